// The request blocks of llhttp's own tests as bytes to send; evaluates none of them.
import corpus from "../fixtures/llhttp-requests.json";

export interface CorpusRequest {
  readonly id: string;
  /** llhttp's error; null: it is well formed, if only for a lenient parser when `isLenient`. */
  readonly error: string | null;
  readonly isLenient: boolean;
  /** Latin-1, with a Host when it had none. */
  readonly bytes: string;
}

export const corpusRequests: readonly CorpusRequest[] = corpus.map(({ id, type, error, http }) => ({
  id,
  error,
  isLenient: type.startsWith("request-lenient"),
  bytes: withHost(toBytes(http)),
}));

/** As llhttp's test runner: a line end is CRLF, unless a backslash precedes it; then escapes are decoded. */
function toBytes(block: string): string {
  // Some blocks are extracted together with those before them; the outcome is that of the last.
  const start = block.lastIndexOf("```http\n");
  const text = start < 0 ? block : block.slice(start + 8);
  return Buffer.from(text, "utf8")
    .toString("latin1")
    .replace(/\\\n/g, "")
    .replace(/\n/g, "\r\n")
    .replace(/\\n/g, "\n")
    .replace(/\\r/g, "\r")
    .replace(/\\t/g, "\t")
    .replace(/\\f/g, "\f")
    .replace(/\\x([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Without a Host the gateway would reject every one, whatever its form. */
function withHost(bytes: string): string {
  if (/\nhost:/i.test(bytes)) return bytes;
  const lineEnd = bytes.indexOf("\r\n", bytes.startsWith("\r\n") ? 2 : 0);
  return lineEnd < 0
    ? bytes
    : `${bytes.slice(0, lineEnd)}\r\nHost: corpus.test${bytes.slice(lineEnd)}`;
}

/** Blocks that stop in the middle: whether the beginning is valid or not, nothing may be carried out. */
export const unfinished: ReadonlySet<string> = new Set([
  "content-length-20",
  "content-length-21",
  "content-length-27",
  "content-length-28",
  "content-length-33",
  "finish-37",
  "finish-38",
  "transfer-encoding-121",
]);
