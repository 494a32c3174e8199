// Reads a request's body as JSON, once, with every limit; knows no resource.
import { ApiError, invalid } from "../model/error.ts";
import { findAmbiguity } from "./json-ambiguity.ts";
import { findJsonError } from "./json-position.ts";

export const MAX_BODY_BYTES = 1_048_576;
/** Far more than any document of ours needs; what recurses over a deeper one could run out of stack. */
const MAX_DEPTH = 64;

/** The parsed body; throws 413, 415 or 400. */
export async function readJson(request: Request, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  requireJson(request.headers.get("content-type"));
  return parseJson(await readText(request, maxBytes));
}

function requireJson(contentType: string | null): void {
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith("charset="));
  const isJson = /^application\/(json|[a-z0-9.-]+\+json)$/.test(type.trim());
  const isUtf8 = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  if (!isJson || !isUtf8) throw new ApiError(415, "the body must be application/json");
}

async function readText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = () =>
    new ApiError(413, `the body is larger than ${maxBytes} bytes`, {
      // The rest of the body is not read, so the connection cannot be used again.
      headers: { connection: "close" },
    });
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const bytes = await readBytes(request.body, maxBytes);
  if (bytes === null) throw tooLarge();
  try {
    // A byte order mark is dropped by the decoder.
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError(400, "the body is not valid UTF-8");
  }
}

/**
 * All bytes, or null as soon as they are too many: a chunked body declares no length and is counted while it arrives.
 * With a reader, because leaving `for await` over the body of a request that was passed on never returns in Bun 1.4.5.
 */
async function readBytes(body: Request["body"], maxBytes: number): Promise<Uint8Array | null> {
  const reader = body?.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > maxBytes) {
      void reader.cancel().catch(() => undefined);
      return null;
    }
    chunks.push(value);
  }
  return Buffer.concat(chunks);
}

/** Parses and refuses what programs read in different ways or cannot read at all. */
export function parseJson(text: string): unknown {
  if (text.trim() === "") throw new ApiError(400, "the body is empty, JSON is required");
  checkDepth(text);
  const value = parse(text);
  const ambiguity = findAmbiguity(text);
  if (ambiguity !== null) throw invalid(ambiguity.path, ambiguity.message);
  return value;
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
  const reason = error.message.replace(/^JSON Parse error: /, "");
  if (at === null) return `the body is not valid JSON: ${reason}`;
  return `the body is not valid JSON at line ${at.line}, column ${at.column}: ${reason}`;
}

/** A member of this name would change what an object inherits as soon as it is copied. */
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
