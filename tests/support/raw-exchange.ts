// Sends raw requests and parses every response on the connection; repairs nothing.
import { type ParsedResponse, parseResponse, connectRaw, type RawOptions } from "./raw-http.ts";

/** One response with its body decoded. */
export interface Answer extends ParsedResponse {
  /** False when the connection ended before the end of the body. */
  readonly isComplete: boolean;
  /** Head and body as received. */
  readonly raw: string;
}

export interface Conversation {
  /** Final responses; 1xx are in `interim`. */
  readonly answers: readonly Answer[];
  readonly interim: readonly number[];
  readonly isClosed: boolean;
  /** Bytes after the last response that could be parsed. */
  readonly rest: string;
  readonly received: string;
  /** Statuses of the responses, `closed` when there was none. */
  readonly outcome: string;
}

export interface ExchangeOptions extends RawOptions {
  /** Stop after so many final responses; default 1. Fewer arrive when the peer closes. */
  readonly answers?: number;
  /** Methods of the requests, for those whose responses never have a body. */
  readonly methods?: readonly string[];
}

/** Sends `bytes`, waits for the responses or the end of the connection, and closes it. */
export async function exchange(
  bytes: string | Uint8Array,
  options: ExchangeOptions,
): Promise<Conversation> {
  const connection = await connectRaw(options);
  const wanted = options.answers ?? 1;
  try {
    connection.write(bytes);
    await connection
      .until((received) => hasAnswers(received, wanted, options.methods))
      .catch((error) => {
        if (!connection.isClosed) throw error;
      });
    return read(connection.received, connection.isClosed, options.methods);
  } finally {
    connection.close();
  }
}

/** What cannot be parsed counts as well: the caller gets the error when it parses the whole. */
function hasAnswers(received: string, wanted: number, methods?: readonly string[]): boolean {
  try {
    return read(received, false, methods).answers.length >= wanted;
  } catch {
    return true;
  }
}

/** Parses the responses in `received`; an incomplete one counts only when the peer has closed. */
export function read(
  received: string,
  isClosed: boolean,
  methods: readonly string[] = [],
): Conversation {
  const answers: Answer[] = [];
  const interim: number[] = [];
  let rest = received;
  while (rest.includes("\r\n\r\n")) {
    const head = parseResponse(rest);
    const headLength = rest.indexOf("\r\n\r\n") + 4;
    if (head.status < 200 && head.status !== 101) {
      interim.push(head.status);
      rest = rest.slice(headLength);
      continue;
    }
    const body = bodyOf(head, methods[answers.length] ?? "GET");
    if (!body.isComplete && !isClosed) break;
    answers.push({
      ...head,
      body: body.content,
      isComplete: body.isComplete || body.endsWithConnection,
      raw: rest.slice(0, headLength + body.length),
    });
    rest = rest.slice(headLength + body.length);
  }
  const outcome = answers.length === 0 ? "closed" : answers.map(({ status }) => status).join(" ");
  return { answers, interim, isClosed, rest, received, outcome };
}

interface Body {
  readonly content: string;
  /** Bytes on the wire. */
  readonly length: number;
  readonly isComplete: boolean;
  readonly endsWithConnection: boolean;
}

function bodyOf(head: ParsedResponse, method: string): Body {
  const { status, body } = head;
  const whole = (content: string, length: number): Body => ({
    content,
    length,
    isComplete: true,
    endsWithConnection: false,
  });
  if (method === "HEAD" || status === 204 || status === 304) return whole("", 0);
  if (head.header("transfer-encoding") === "chunked") return chunked(body);
  const declared = head.header("content-length");
  if (declared === null)
    return { content: body, length: body.length, isComplete: false, endsWithConnection: true };
  const length = Number(declared);
  if (body.length >= length) return whole(body.slice(0, length), length);
  return { content: body, length: body.length, isComplete: false, endsWithConnection: false };
}

function chunked(text: string): Body {
  let at = 0;
  let content = "";
  const short = () => ({
    content,
    length: text.length,
    isComplete: false,
    endsWithConnection: false,
  });
  for (;;) {
    const end = text.indexOf("\r\n", at);
    if (end < 0) return short();
    const size = Number.parseInt(text.slice(at, end), 16);
    at = end + 2;
    if (size === 0) {
      // Behind the fields of the trailer.
      const last = text.indexOf("\r\n\r\n", at - 2);
      return last < 0
        ? short()
        : { content, length: last + 4, isComplete: true, endsWithConnection: false };
    }
    if (text.length < at + size + 2) return short();
    content += text.slice(at, at + size);
    at += size + 2;
  }
}
