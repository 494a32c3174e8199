// The form of a row about HTTP/1.1: bytes sent, response, and what reaches the target; with what most rows expect.
import type { Engine } from "../../support/engines.ts";
import type { Answerer } from "../../support/origin.ts";

export interface Expected {
  /** Statuses of the final responses. */
  readonly outcome: string;
  /** Methods and targets that arrive at the target. Default: none of a refused request, else one for each response. */
  readonly target: readonly string[];
  /** In all that the client receives. */
  readonly response?: RegExp;
  readonly noResponse?: RegExp;
  /** In all that the target receives. */
  readonly request?: RegExp;
  readonly noRequest?: RegExp;
  /** The gateway closes the connection of the client. */
  readonly isClosed?: boolean;
  /** The body of the last response is complete. Default: true. */
  readonly isComplete?: boolean;
  /** The connection to the target of the last request stays open. Default: not looked at. */
  readonly isKept?: boolean;
}

export interface Rule extends Expected {
  readonly section: string;
  readonly rule: string;
  readonly send: string;
  /** Of the target. Default: 200 with `ok`. */
  readonly script?: string | Answerer;
  /** What an engine does else, with its reason in docs/limits-of-bun.md. */
  readonly limits?: Partial<Record<Engine, Partial<Expected>>>;
}

export const OK = "HTTP/1.1 200 OK\r\n";
export const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
export const get = (target = "/", fields = "", version = "1.1") =>
  `GET ${target} HTTP/${version}\r\nHost: h\r\n${fields}\r\n`;
export const post = (fields: string, body = "", version = "1.1") =>
  `POST / HTTP/${version}\r\nHost: h\r\n${fields}\r\n${body}`;
export const NEXT = get("/next");

export const refused = { outcome: "400", target: [], isClosed: true } as const;
export const passed = { outcome: "200", target: ["GET /"] } as const;
export const stored = { outcome: "200", target: ["POST /"] } as const;
export const badGateway = { outcome: "502", target: ["GET /"], isKept: false } as const;
/** Bun.serve answers a pipelined request with the end of the connection. */
export const noPipelining = { outcome: "closed", target: ["GET /"], isClosed: true } as const;

/** A target that sends these bytes and closes. */
export const thenCloses =
  (bytes: string): Answerer =>
  (_, connection) => {
    connection.write(bytes);
    connection.end();
    return null;
  };
