// HTTP requests of plugins to other servers, bounded in number, time and size; knows no plugin.
import { DestinationError, Dialer } from "../../dialer/dialer.ts";
import type { DestinationRules } from "../../net/destinations.ts";
import type { ManagementCookies } from "../../http/management-cookies.ts";
import type { Callout, CalloutRequest, CalloutResponse } from "../../pdk/kit.ts";

export interface CalloutOptions {
  /** The gateway's name in CDN-Loop (RFC 8586), by which its listeners and management API recognize callouts. */
  readonly loopToken: string;
  /** Where requests may go. Default: anywhere. */
  readonly rules?: () => DestinationRules;
  /** Removed from responses: another server must not set them. Default: none. */
  readonly managementCookies?: ManagementCookies;
  /** Concurrent requests; one more fails. Default 256, Bun's limit for all threads together. */
  readonly maxConcurrent?: number;
}

const ANYWHERE: DestinationRules = { permitted: ["0.0.0.0/0", "::/0"], management: [] };
const MAX_CONCURRENT = 256;
const MAX_BYTES = 1_048_576;
/** Bun sends GET instead of a method that it does not know. */
const METHODS: ReadonlySet<string> = new Set([
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"],
  ...["PURGE", "QUERY", "PROPFIND", "REPORT", "SEARCH"],
]);
/** Content codings (RFC 9110 section 8.4.1) that the gateway decodes. */
const codings: ReadonlyMap<string, Bun.CompressionFormat> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "brotli"],
  ["zstd", "zstd"],
]);

/**
 * The gateway decodes a compressed response and removes its Content-Encoding and Content-Length; a response with an unknown
 * coding stays as it is. The default Accept-Encoding is `identity`. Errors hold neither the URL nor anything sent or received.
 */
export function createCallout({
  loopToken,
  rules = () => ANYWHERE,
  managementCookies,
  maxConcurrent = MAX_CONCURRENT,
}: CalloutOptions): Callout {
  // Ignores the environment: HTTP_PROXY and NODE_TLS_REJECT_UNAUTHORIZED must not apply to callouts.
  const tls = { rejectUnauthorized: true };
  const session = new Bun.FetchSession({ proxy: false, tls });
  const dialer = new Dialer({ rules, fetch: session.fetch });
  let active = 0;
  return async (request) => {
    const url = toUrl(request.url);
    const init = toInit(request, loopToken);
    if (active >= maxConcurrent) throw new Error("too many concurrent requests of plugins");
    active++;
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), request.timeoutMs);
    let isReading = false;
    try {
      const response = await dialer.fetch(url, { ...init, tls, signal: abort.signal });
      isReading = true;
      const result = await toResponse(response, request.maxBytes ?? MAX_BYTES);
      if (managementCookies !== undefined) removeCookies(result.headers, managementCookies);
      return result;
    } catch (error) {
      throw abort.signal.aborted ? new Error("no response in time") : explained(error, isReading);
    } finally {
      clearTimeout(timer);
      // Ends a response that was not read to its end.
      abort.abort();
      active--;
    }
  };
}

function toUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new Error("the URL is neither http nor https");
  return url.href;
}

function toInit(request: CalloutRequest, loopToken: string) {
  const method = (request.method ?? "GET").toUpperCase();
  if (!METHODS.has(method)) throw new Error("the method cannot be sent");
  const body = (request.body ?? null) as string | Uint8Array<ArrayBuffer> | null;
  if (body !== null && (method === "GET" || method === "HEAD"))
    throw new Error(`a ${method} request cannot have a body`);
  const headers = toHeaders(request.headers ?? {});
  const before = headers.get("cdn-loop");
  headers.set("cdn-loop", before === null ? loopToken : `${before}, ${loopToken}`);
  if (!headers.has("user-agent")) headers.set("user-agent", "sluice");
  if (!headers.has("accept-encoding")) headers.set("accept-encoding", "identity");
  // Bun would decode what it knows and leave the headers, so that a decoded body looks like an encoded one.
  const decompress = false;
  return { method, headers, body, redirect: "manual", decompress } as const;
}

function toHeaders(given: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers({ ...given });
  } catch {
    throw new Error("a header cannot be sent");
  }
}

async function toResponse(response: Response, maxBytes: number): Promise<CalloutResponse> {
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

/** TypeScript knows only the formats of browsers. */
const decoded = (body: ReadableStream<Uint8Array<ArrayBuffer>>, coding: Bun.CompressionFormat) =>
  body.pipeThrough(new DecompressionStream(coding as CompressionFormat));

async function readAll(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > maxBytes) throw new ResponseError("the response is too large");
    chunks.push(chunk);
  }
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
}

/** Its message may be shown as it is. */
class ResponseError extends Error {}

const reasons: ReadonlyMap<unknown, string> = new Map([
  ["ENOTFOUND", "the host could not be resolved"],
  ["EAI_AGAIN", "the host could not be resolved"],
  ["ECONNREFUSED", "the connection was refused"],
  ["ECONNRESET", "the connection was closed before the response was complete"],
  ["ETIMEDOUT", "no response in time"],
  ["EHOSTUNREACH", "the host cannot be reached"],
  ["ENETUNREACH", "the host cannot be reached"],
  ["EPROTO", "the TLS handshake failed"],
]);

/** Bun's own messages hold the whole URL. */
function explained(error: unknown, isReading: boolean): Error {
  if (error instanceof ResponseError) return error;
  if (error instanceof DestinationError) return new Error(`the host ${error.message}`);
  const { code } = error as { readonly code?: unknown };
  const known = reasons.get(code);
  if (known !== undefined) return new Error(known);
  if (isReading) return new Error("the response cannot be decoded");
  if (typeof code !== "string") return new Error("the request failed");
  if (/CERT|SIGNATURE/.test(code)) return new Error("the certificate is not trusted");
  return new Error(`the request failed: ${code}`);
}
