// HTTP to CAs: timeouts, trust, limits, and readable errors; knows no order and no account.
import type { Fetch } from "../dialer/dialer.ts";
import { errorTextOf, quote } from "../net/quote.ts";
import { type AcmeProblem, AcmeFailure, describeAcmeProblem, typeOf } from "./failure.ts";

/** In the form that the ACME library reads. */
export interface AcmeResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Decoded when it is JSON, else the text. */
  readonly data: unknown;
}

export interface TransportOptions {
  /** PEM of trusted CAs; empty: the system's. */
  readonly cas: string;
  readonly fetch: Fetch;
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

const MAX_BYTES = 1_048_576;

export class AcmeTransport {
  readonly #options: TransportOptions;
  /** Retry-After of the last response; null: none. */
  retryAfterMs: number | null = null;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** Throws an AcmeFailure except for success and badNonce, which the caller retries. */
  async request(
    url: string,
    method: string,
    options: { readonly data?: unknown } = {},
  ): Promise<AcmeResponse> {
    const { host } = new URL(url);
    const response = await this.#send(url, method, options.data).catch((cause: unknown) => {
      throw unreachable(host, cause);
    });
    const retryAfterMs = this.#retryAfter(response.headers["retry-after"]);
    this.retryAfterMs = retryAfterMs;
    if (response.status < 400) return response;
    const problem = (typeof response.data === "object" ? response.data : {}) as AcmeProblem;
    const type = typeOf(problem ?? {});
    if (type === "badNonce") return response;
    const isProblem = problem?.type !== undefined || problem?.detail !== undefined;
    const what = isProblem ? describeAcmeProblem(problem) : withoutProblem(response);
    throw new AcmeFailure(`${host}: ${what}`, { type, status: response.status, retryAfterMs });
  }

  async #send(url: string, method: string, data: unknown): Promise<AcmeResponse> {
    const { cas, timeoutMs, signal } = this.#options;
    const response = await this.#options.fetch(url, {
      method: method.toUpperCase(),
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      headers: {
        "User-Agent": "sluice",
        ...(data === undefined ? {} : { "Content-Type": "application/jose+json" }),
      },
      ...(data === undefined ? {} : { body: JSON.stringify(data) }),
      ...(cas === "" ? {} : { tls: { ca: cas } }),
    });
    const text = await limitedText(response);
    const headers: Record<string, string> = {};
    for (const [name, value] of response.headers) headers[name.toLowerCase()] = value;
    const isJson = /\bjson\b/.test(headers["content-type"] ?? "");
    return { status: response.status, headers, data: isJson && text !== "" ? parse(text) : text };
  }

  /** RFC 9110 section 10.2.3: seconds, or a date. */
  #retryAfter(value: string | undefined): number | null {
    if (value === undefined) return null;
    if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
    const at = Date.parse(value);
    return Number.isNaN(at) ? null : Math.max(0, at - this.#options.now());
  }
}

/** A CA behind a proxy or a load balancer, whose words are no problem document. */
function withoutProblem({ status, data }: AcmeResponse): string {
  const said = quote(errorTextOf(typeof data === "string" ? data : JSON.stringify(data)), []);
  return `the CA returned status ${status}${said === "" ? "" : ` (${said})`}`;
}

async function limitedText(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > MAX_BYTES) throw new Error("the response is too long");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("the response is not JSON");
  }
}

function unreachable(host: string, cause: unknown): AcmeFailure {
  const { name, message, code } = cause as Error & { readonly code?: string };
  const why =
    name === "TimeoutError"
      ? "it did not respond in time"
      : (reasons[code ?? ""] ?? message.replace(/[\p{Cc}\s]+/gu, " "));
  return new AcmeFailure(`${host} cannot be reached: ${why}`, { type: "unreachable", cause });
}

const reasons: Readonly<Record<string, string>> = {
  ConnectionRefused: "the connection is refused",
  ConnectionClosed: "it closed the connection",
  ECONNREFUSED: "the connection is refused",
  ECONNRESET: "it closed the connection",
  FailedToOpenSocket: "the connection failed",
  ENOTFOUND: "its name cannot be resolved",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not trusted; set ca_certificates of the account",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not trusted; set ca_certificates of the account",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "its certificate is not trusted; set ca_certificates of the account",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "its certificate is not trusted; set ca_certificates of the account",
  CERT_HAS_EXPIRED: "its certificate has expired",
};
