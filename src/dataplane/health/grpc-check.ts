// The messages of grpc.health.v1.Health/Check, by hand (github.com/grpc/grpc/blob/master/doc/health-checking.md); knows no connection.
import type { FailureText } from "../../shared-memory/target-health.ts";
import type { FieldPairs } from "../../http/fields.ts";

export const GRPC_CHECK_PATH = "/grpc.health.v1.Health/Check";

/** Flag and length before each message. */
const PREFIX_BYTES = 5;
/** The message has one enum; more is not a health status. */
const MAX_RESPONSE_BYTES = 4096;

/** Field 1, length-delimited, and field 1, varint (protobuf encoding). */
const SERVICE_TAG = 0x0a;
const STATUS_TAG = 0x08;

const OK = "0";
const NOT_FOUND = "5";
const UNIMPLEMENTED = "12";
const SERVING = 1;

/** HealthCheckRequest with its prefix. `service` empty: the server as a whole. */
export function checkMessage(service: string): Uint8Array {
  const name = Buffer.from(service);
  const message =
    name.length === 0
      ? name
      : Buffer.concat([Buffer.from([SERVICE_TAG]), varint(name.length), name]);
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

/** Collects a HealthCheckResponse. */
export class GrpcCheckResponse {
  #bytes: Buffer = Buffer.alloc(0);
  #status: string | null = null;

  /** `grpc-status` is in the trailers, or in the head of a response without a message. */
  head(headers: Headers): void {
    this.#status = headers.get("grpc-status");
  }

  content(chunk: Buffer): void {
    if (this.#bytes.length <= MAX_RESPONSE_BYTES) this.#bytes = Buffer.concat([this.#bytes, chunk]);
  }

  trailers(trailers: FieldPairs): void {
    for (const [name, value] of trailers)
      if (name.toLowerCase() === "grpc-status") this.#status = value;
  }

  /** Null: healthy. */
  result(): FailureText | null {
    switch (this.#status) {
      case OK:
        return servingStatus(this.#bytes) === SERVING ? null : "the service is not serving";
      case NOT_FOUND:
        return "the target does not know the service of the check";
      case UNIMPLEMENTED:
        return "the target has no gRPC health service";
      default:
        return "the gRPC health check failed";
    }
  }
}

/** `status` of a message with its prefix: 0 when it is absent, -1 for a malformed message. */
function servingStatus(bytes: Buffer): number {
  if (bytes.length < PREFIX_BYTES || bytes[0] !== 0) return -1;
  if (bytes.length !== PREFIX_BYTES + bytes.readUInt32BE(1)) return -1;
  if (bytes.length === PREFIX_BYTES) return 0;
  // The known statuses fit into one byte of a varint.
  return bytes[PREFIX_BYTES] === STATUS_TAG && bytes.length === PREFIX_BYTES + 2
    ? (bytes[PREFIX_BYTES + 1] ?? -1)
    : -1;
}
