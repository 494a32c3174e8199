// What gRPC says over HTTP/2: content types, statuses, messages and deadlines of a call; knows no request and no socket.
//
// Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

/** Not gRPC-Web, whose clients send ordinary bodies. */
const CONTENT_TYPE = /^application\/grpc(?:$|[+;\s])/i;

export const GRPC_CONTENT_TYPE = "application/grpc";

/** Null: absent. */
export const isGrpcContentType = (contentType: string | null | undefined): boolean =>
  contentType != null && CONTENT_TYPE.test(contentType);

/** The statuses by their numbers, each with the HTTP status that stands for it: the mapping of Envoy's outlier detection. */
const statuses = [
  ["OK", 200],
  ["CANCELLED", 499],
  ["UNKNOWN", 500],
  ["INVALID_ARGUMENT", 400],
  ["DEADLINE_EXCEEDED", 504],
  ["NOT_FOUND", 404],
  ["ALREADY_EXISTS", 409],
  ["PERMISSION_DENIED", 403],
  ["RESOURCE_EXHAUSTED", 429],
  ["FAILED_PRECONDITION", 400],
  ["ABORTED", 409],
  ["OUT_OF_RANGE", 400],
  ["UNIMPLEMENTED", 501],
  ["INTERNAL", 500],
  ["UNAVAILABLE", 503],
  ["DATA_LOSS", 500],
  ["UNAUTHENTICATED", 401],
] as const;

/** `UNAVAILABLE` for 14; the statuses in the order of their numbers. */
export const grpcStatusNames: readonly string[] = statuses.map(([name]) => name);

const UNKNOWN = 2;

/** The number in a `grpc-status` field; null: absent. A value that is no status stands for UNKNOWN, as for clients. */
export function readGrpcStatus(value: string | null | undefined): number | null {
  if (value == null) return null;
  const number = /^\d{1,2}$/.test(value) ? Number(value) : UNKNOWN;
  return number < statuses.length ? number : UNKNOWN;
}

/** The HTTP status for metrics, retries and health checks. */
export const httpStatusOfGrpc = (status: number): number => statuses[status]?.[1] ?? 500;

/** Of a response without `grpc-status`. 413, 431 and 504 say more here than in the table for clients. */
const ofHttp: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  408: 4,
  413: 8,
  429: 8,
  431: 8,
  499: 1,
  500: 13,
  501: 12,
  502: 14,
  503: 14,
  504: 4,
};

/** https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md: any other status is UNKNOWN. */
export const grpcStatusOfHttp = (status: number): number => ofHttp[status] ?? UNKNOWN;

const encoder = new TextEncoder();

/** The value of `grpc-message`: percent-encoded UTF-8. */
export function encodeGrpcMessage(text: string): string {
  if (/^[ -$&-~]*$/.test(text)) return text;
  let encoded = "";
  for (const byte of encoder.encode(text)) {
    const isPlain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += isPlain
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const unitMs: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** Milliseconds of a `grpc-timeout` field; null: not valid. */
export function readGrpcTimeout(value: string): number | null {
  const [, digits = "", unit = ""] = TIMEOUT.exec(value) ?? [];
  const factor = unitMs[unit];
  return factor === undefined ? null : Number(digits) * factor;
}

/** The value of `grpc-timeout`, in the finest of four units whose number has at most eight digits; never less than given. */
export function formatGrpcTimeout(ms: number): string {
  const left = Math.max(0, ms);
  if (left < 1) return `${Math.ceil(left * 1000)}u`;
  if (left < 1e8) return `${Math.ceil(left)}m`;
  return left < 1e11 ? `${Math.ceil(left / 1000)}S` : `${Math.ceil(left / 3_600_000)}H`;
}

/** Bytes before each message: whether it is compressed, then its length. */
const PREFIX_BYTES = 5;

/** Follows the messages of one direction as its bytes pass, and keeps none of them. */
export class GrpcMessages {
  readonly #maxBytes: number;
  /** Bytes of the current prefix that have passed, and the length in them. */
  #prefixBytes = 0;
  #length = 0;
  /** Bytes of the current message that are still to come. */
  #left = 0;

  /** `maxBytes`: of a message without its prefix; 0: no limit. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** False: a message is longer than the limit, as its prefix says. */
  push(chunk: Uint8Array): boolean {
    if (this.#maxBytes === 0) return true;
    let at = 0;
    while (at < chunk.byteLength) {
      if (this.#left > 0) {
        const passed = Math.min(this.#left, chunk.byteLength - at);
        this.#left -= passed;
        at += passed;
      } else if (!this.#readPrefix(chunk[at++] ?? 0)) return false;
    }
    return true;
  }

  #readPrefix(byte: number): boolean {
    // The first byte is the flag.
    if (this.#prefixBytes > 0) this.#length = this.#length * 256 + byte;
    if (++this.#prefixBytes < PREFIX_BYTES) return true;
    this.#left = this.#length;
    this.#length = 0;
    this.#prefixBytes = 0;
    return this.#left <= this.#maxBytes;
  }
}
