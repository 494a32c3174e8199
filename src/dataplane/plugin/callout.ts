// Requests of plugins to somebody else: bounded in number, time and size; knows no plugin.
import type { ManagementCookies } from "../../http/management-cookies.ts";
import type { Callout, CalloutRequest, CalloutResponse } from "../../pdk/kit.ts";

export interface CalloutOptions {
  /** The gateway's name in CDN-Loop (RFC 8586): by it, its own listeners and management API know what comes from here. */
  readonly loopToken: string;
  /** Left out of answers: whoever gave one is no more than a target. Default: none. */
  readonly managementCookies?: ManagementCookies;
  /** Requests at once; another one fails. Default 256, which is as many as Bun makes at once in all threads together. */
  readonly maxConcurrent?: number;
}

const MAX_CONCURRENT = 256;
const MAX_BYTES = 1_048_576;
/** Bun sends a GET in the place of a method that it does not know. */
const METHODS: ReadonlySet<string> = new Set([
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"],
  ...["PURGE", "QUERY", "PROPFIND", "REPORT", "SEARCH"],
]);
/** Content codings (RFC 9110 section 8.4.1) that are taken off. */
const codings: ReadonlyMap<string, Bun.CompressionFormat> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "brotli"],
  ["zstd", "zstd"],
]);

/**
 * An answer that came compressed is decoded, and its headers then say neither Content-Encoding nor Content-Length; one with a
 * coding that is not known stays as it came. Nothing is offered unless the request has an Accept-Encoding. Errors hold neither
 * the address nor anything sent or received.
 */
export function createCallout({
  loopToken,
  managementCookies,
  maxConcurrent = MAX_CONCURRENT,
}: CalloutOptions): Callout {
  // Whatever the environment says: a proxy, or a switch that believes every certificate, is for those who ask for it.
  const session = new Bun.FetchSession({ proxy: false, tls: { rejectUnauthorized: true } });
  let underWay = 0;
  return async (request) => {
    const url = toUrl(request.url);
    const init = toInit(request, loopToken);
    if (underWay >= maxConcurrent) throw new Error("too many requests of plugins are under way");
    underWay++;
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), request.timeoutMs);
    let isReading = false;
    try {
      const response = await session.fetch(url, { ...init, signal: abort.signal });
      isReading = true;
      const answer = await toAnswer(response, request.maxBytes ?? MAX_BYTES);
      if (managementCookies !== undefined) removeCookies(answer.headers, managementCookies);
      return answer;
    } catch (error) {
      throw abort.signal.aborted ? new Error("no answer in time") : explained(error, isReading);
    } finally {
      clearTimeout(timer);
      // Ends what is still being received; after an answer that was read to its end this does nothing.
      abort.abort();
      underWay--;
    }
  };
}

function toUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new Error("the address is neither http nor https");
  return url.href;
}

function toInit(request: CalloutRequest, loopToken: string) {
  const method = (request.method ?? "GET").toUpperCase();
  if (!METHODS.has(method)) throw new Error("the method is not one that can be sent");
  const body = (request.body ?? null) as string | Uint8Array<ArrayBuffer> | null;
  if (body !== null && (method === "GET" || method === "HEAD"))
    throw new Error(`a ${method} request cannot have a body`);
  const headers = toHeaders(request.headers ?? {});
  const before = headers.get("cdn-loop");
  headers.set("cdn-loop", before === null ? loopToken : `${before}, ${loopToken}`);
  if (!headers.has("user-agent")) headers.set("user-agent", "sluice");
  if (!headers.has("accept-encoding")) headers.set("accept-encoding", "identity");
  // It decodes what it knows and leaves the headers as they were, which tell nobody whether it did.
  const decompress = false;
  return { method, headers, body, redirect: "manual", decompress } as const;
}

function toHeaders(given: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers({ ...given });
  } catch {
    throw new Error("a header field cannot be sent");
  }
}

async function toAnswer(response: Response, maxBytes: number): Promise<CalloutResponse> {
  const headers = new Headers(response.headers);
  const { status, body } = response;
  if (body === null) return { status, headers, body: new Uint8Array() };
  const coding = codings.get(headers.get("content-encoding")?.trim().toLowerCase() ?? "");
  if (coding === undefined) return { status, headers, body: await readAll(body, maxBytes) };
  headers.delete("content-encoding");
  headers.delete("content-length");
  return { status, headers, body: await readAll(decoded(body, coding), maxBytes) };
}

function removeCookies(headers: Headers, cookies: ManagementCookies): void {
  const set = headers.getSetCookie();
  const others = set.filter((field) => !cookies.isSetBy(field));
  if (others.length === set.length) return;
  headers.delete("set-cookie");
  for (const field of others) headers.append("set-cookie", field);
}

/** Its types know only the formats that browsers have. */
const decoded = (body: ReadableStream<Uint8Array<ArrayBuffer>>, coding: Bun.CompressionFormat) =>
  body.pipeThrough(new DecompressionStream(coding as CompressionFormat));

async function readAll(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > maxBytes) throw new AnswerError("the answer is too long");
    chunks.push(chunk);
  }
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
}

/** Says in words of ours what is wrong. */
class AnswerError extends Error {}

const reasons: ReadonlyMap<unknown, string> = new Map([
  ["ENOTFOUND", "the host could not be resolved"],
  ["EAI_AGAIN", "the host could not be resolved"],
  ["ECONNREFUSED", "the connection was refused"],
  ["ECONNRESET", "the connection was closed before the answer was complete"],
  ["ETIMEDOUT", "no answer in time"],
  ["EHOSTUNREACH", "the host cannot be reached"],
  ["ENETUNREACH", "the host cannot be reached"],
  ["EPROTO", "the TLS handshake failed"],
]);

/** Bun's own messages hold the whole address. */
function explained(error: unknown, isReading: boolean): Error {
  if (error instanceof AnswerError) return error;
  const { code } = error as { readonly code?: unknown };
  const known = reasons.get(code);
  if (known !== undefined) return new Error(known);
  if (isReading) return new Error("the answer cannot be decoded");
  if (typeof code !== "string") return new Error("the request failed");
  if (/CERT|SIGNATURE/.test(code)) return new Error("the certificate is not trusted");
  return new Error(`the request failed: ${code}`);
}
