// HTTP client for provider APIs: limits time and size, rejects redirects, explains failures; knows no provider.
import { setTimeout as sleep } from "node:timers/promises";
import { isDocument } from "../../control/body.ts";
import { readText, reasonOf } from "../../control/outgoing-request.ts";
import { errorTextOf, quote } from "../../net/quote.ts";
import { DnsError } from "./failure.ts";
import type { DnsClientParts } from "./provider.ts";

type HeaderFields = Readonly<Record<string, string>>;

/** The complete request, for signatures. */
export interface Outgoing {
  readonly method: string;
  readonly url: string;
  /** Empty: none. */
  readonly body: string;
}

export interface ApiOptions {
  /** Name of the provider in messages. */
  readonly service: string;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** Called for each attempt. */
  readonly headers: (request: Outgoing) => HeaderFields | Promise<HeaderFields>;
  /** Removed from messages, also from texts of the provider. */
  readonly secrets: readonly (string | undefined)[];
  /** Extracts the provider's error text. Empty, and by default: the usual members. */
  readonly complaint?: (answer: ApiAnswer) => string;
  readonly parts: DnsClientParts;
}

export interface ApiCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with query, appended to `baseUrl`. */
  readonly path: string;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged, with its content type in `headers`. */
  readonly text?: string;
  /** Statuses outside of 2xx that are no failures. */
  readonly accept?: readonly number[] | ((answer: ApiAnswer) => boolean);
}

export interface ApiAnswer {
  readonly status: number;
  readonly text: string;
  /** The parsed body; undefined when it is not JSON. */
  readonly json: unknown;
}

export type Ask = (call: ApiCall) => Promise<ApiAnswer>;

const TIMEOUT_MS = 15_000;
const MAX_BYTES = 4_194_304;
/** Attempts of one request when the provider limits the rate. */
const MAX_ATTEMPTS = 3;
const MAX_PAUSE_SECONDS = 30;

/** Resolves with successful responses; throws a DnsError for failures. */
export function createApi(options: ApiOptions): Ask {
  return async (call) => {
    for (let attempt = 1; ; attempt++) {
      const { answer, retryAfter } = await attemptCall(options, call);
      if (isWanted(answer, call)) return answer;
      const isLimit = answer.status === 429 || (answer.status === 503 && retryAfter !== null);
      const pause = retryAfter ?? attempt * 2;
      if (!isLimit || attempt === MAX_ATTEMPTS || pause > MAX_PAUSE_SECONDS)
        throw failure(options, answer, retryAfter);
      const { signal } = options.parts;
      await sleep(pause * 1000, undefined, signal === undefined ? {} : { signal });
    }
  };
}

function isWanted(answer: ApiAnswer, { accept = [] }: ApiCall): boolean {
  if (answer.status >= 200 && answer.status < 300) return true;
  return typeof accept === "function" ? accept(answer) : accept.includes(answer.status);
}

async function attemptCall(options: ApiOptions, call: ApiCall) {
  const { service, parts } = options;
  const url = `${options.baseUrl}${call.path}`;
  const body = call.json === undefined ? (call.text ?? "") : JSON.stringify(call.json);
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await parts.dialer.fetch(url, {
      method: call.method,
      headers: {
        accept: "application/json",
        ...(call.json === undefined ? {} : { "content-type": "application/json" }),
        ...(await options.headers({ method: call.method, url, body })),
      },
      ...(body === "" ? {} : { body }),
      // A redirect could send the credentials in the request to another server.
      redirect: "manual",
      signal: parts.signal === undefined ? timeout : AbortSignal.any([timeout, parts.signal]),
    });
    const text = await readText(response, MAX_BYTES);
    if (text === null) throw new DnsError(`the response of ${service} is too large`);
    const answer = { status: response.status, text, json: parse(text) };
    return { answer, retryAfter: secondsOf(response.headers.get("retry-after")) };
  } catch (error) {
    if (error instanceof DnsError || parts.signal?.aborted) throw error;
    const host = URL.parse(url)?.host ?? "";
    throw new DnsError(`${service}: ${host} ${reasonOf(error, { timeoutMs: TIMEOUT_MS })}`);
  }
}

function failure(options: ApiOptions, answer: ApiAnswer, retryAfter: number | null): DnsError {
  const { service, secrets } = options;
  const { status } = answer;
  // A proxy in front of the provider may respond in another form than its API.
  const said = options.complaint?.(answer).trim() || errorTextOf(answer.text);
  const own = quote(
    typeof said === "string" ? said.trim() : "",
    secrets.map((each) => each ?? null),
  );
  const details = own === "" ? `status ${status}` : `status ${status}: ${own}`;
  return new DnsError(`${service} ${meaningOf(status, retryAfter)} (${details})`, status);
}

function meaningOf(status: number, retryAfter: number | null): string {
  if (status >= 300 && status < 400)
    return "responds with a redirect, which the gateway does not follow";
  if (status === 401) return "rejects the credentials";
  if (status === 403) return "does not allow this with these credentials";
  if (status === 404) return "does not have the requested resource";
  if (status === 429)
    return retryAfter === null
      ? "limits the request rate"
      : `limits the request rate: try again in ${retryAfter} s`;
  return status >= 500 ? "has an internal error" : "rejects the request";
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** RFC 9110 section 10.2.3: seconds, or a date. */
function secondsOf(value: string | null): number | null {
  if (value === null) return null;
  if (/^\d+$/.test(value.trim())) return Number(value);
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

/** A list in a response, or an empty one. */
export function listIn(
  value: unknown,
  member?: string,
): readonly Readonly<Record<string, unknown>>[] {
  const list = member === undefined ? value : isDocument(value) ? value[member] : undefined;
  return Array.isArray(list) ? list.filter(isDocument) : [];
}
