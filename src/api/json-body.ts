// Reads a request's body as JSON, once, with every limit; knows no resource.
import { decodeText } from "../import/transfer/source.ts";
import { Pace } from "../pace.ts";
import { decoderOf } from "./content-coding.ts";
import { ApiError, invalid } from "../model/error.ts";
import { findAmbiguity } from "../model/json-ambiguity.ts";
import { findJsonError } from "../model/json-position.ts";

const MAX_BODY_BYTES = 1_048_576;
/** Deadline of the whole body: a client that sends a byte now and then would hold a connection forever. */
const BODY_DEADLINE_MS = 30_000;
/** More than any valid body needs; recursion over a deeper one could exhaust the stack. */
const MAX_DEPTH = 64;

export interface BodyLimits {
  readonly maxBytes: number;
  /** Deadline of the whole body. */
  readonly deadlineMs: number;
}

const LARGE = 65_536;

const LIMITS: BodyLimits = { maxBytes: MAX_BODY_BYTES, deadlineMs: BODY_DEADLINE_MS };

/** The parsed body; throws 408, 413, 415 or 400. */
export async function readJson(request: Request, limits = LIMITS): Promise<unknown> {
  requireJson(request.headers.get("content-type"));
  const text = await readText(request, limits);
  const value = parseJson(text);
  // What is made of a large body takes as long again: requests that came meanwhile go first.
  if (text.length > LARGE) await new Pace().rest();
  return value;
}

function requireJson(contentType: string | null): void {
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith("charset="));
  const isJson = /^application\/(json|[a-z0-9.-]+\+json)$/.test(type.trim());
  const isUtf8 = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  if (!isJson || !isUtf8) throw new ApiError(415, "the body must be application/json");
}

/** The body as text, whatever it says; throws 408, 413 or 400. */
async function readText(request: Request, limits: BodyLimits): Promise<string> {
  return decodeText(await readBytes(request, limits));
}

/**
 * All bytes, decoded; throws a 413 as soon as they are too many: a chunked body declares no length. Uses a reader, because leaving
 * `for await` over the body of a cloned request never returns in Bun 1.4.5.
 */
export async function readBytes(
  request: Request,
  { maxBytes, deadlineMs }: BodyLimits,
): Promise<Uint8Array> {
  const decode = decoderOf(request, maxBytes);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const reader = request.body?.getReader();
  if (reader === undefined) return new Uint8Array();
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooSlow(deadlineMs)), deadlineMs);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    while (true) {
      const { done, value } = await Promise.race([reader.read(), late.promise]);
      if (done) break;
      size += value.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(value);
    }
  } catch (error) {
    void reader.cancel().catch(() => undefined);
    throw error;
  } finally {
    clearTimeout(timer);
  }
  const bytes = Buffer.concat(chunks);
  return decode === null ? bytes : await decode(bytes);
}

/** The rest of the body is not read, so the connection cannot be used again. */
const closing = { headers: { connection: "close" } };

const tooLarge = (maxBytes: number) =>
  new ApiError(413, `the body is larger than ${maxBytes} bytes`, closing);

const tooSlow = (deadlineMs: number) =>
  new ApiError(408, `the body did not arrive within ${deadlineMs / 1000} seconds`, closing);

/** Parses JSON and rejects what parsers read differently or not at all. */
export function parseJson(text: string): unknown {
  if (text.trim() === "") throw new ApiError(400, "the body is empty, JSON is required");
  checkDepth(text);
  const value = parse(text);
  const ambiguity = findAmbiguity(text);
  if (ambiguity !== null) throw invalid(ambiguity.path, ambiguity.message);
  refuseSealed(text, value);
  return value;
}

/**
 * A forged text in the form of a sealed value would make the next start fail: no key decrypts it.
 */
function refuseSealed(text: string, value: unknown): void {
  if (!text.includes("sealed:1:") && !text.includes("\\u")) return;
  if (/"sealed:1:[0-9a-f]{8}:/.test(JSON.stringify(value)))
    throw new ApiError(
      400,
      "the body holds a text that looks like a value encrypted by the gateway",
    );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(
      text,
      text.includes("__proto__") || text.includes("\\u") ? refuseProto : undefined,
    );
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError(400, malformed(text, error as Error));
  }
}

function malformed(text: string, error: Error): string {
  const at = findJsonError(text);
  // The parser quotes the invalid token, which may be a password without quotation marks.
  const reason = error.message.replace(/^JSON Parse error: /, "").replace(/ ?"[\s\S]*"/, "");
  if (at === null) return `the body is not valid JSON: ${reason}`;
  return `the body is not valid JSON at line ${at.line}, column ${at.column}: ${reason}`;
}

/** A member of this name would change the prototype of a copied object. */
function refuseProto(key: string, value: unknown): unknown {
  if (key === "__proto__") throw new ApiError(400, "__proto__: is not a known field");
  return value;
}

function checkDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 92) i++;
      else if (code === 34) inString = false;
    } else if (code === 34) inString = true;
    else if (code === 123 || code === 91) {
      if (++depth > MAX_DEPTH)
        throw new ApiError(400, `the body is nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === 125 || code === 93) depth--;
  }
}
