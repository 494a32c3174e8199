// What a plugin can answer a request with instead of letting it go on; knows no connection.
import type { ProxyStatusError } from "../http/proxy-status.ts";

/** A refusal: the client gets the gateway's error page in the form that it likes. */
export interface Rejection {
  readonly kind: "rejection";
  /** 400 to 599. */
  readonly status: number;
  /** For people and programs that look into it: `auth.key.missing`. Never shown to the client. */
  readonly reason: string;
  /** Half a sentence for the client, as in "the API key is missing": no secrets, no internals. */
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
  /** RFC 9209 section 2.3. */
  readonly token: ProxyStatusError;
}

/** A whole answer of the plugin's own. */
export interface Reply {
  readonly kind: "reply";
  readonly status: number;
  readonly reason: string;
  readonly headers: Headers;
  /** Null: none. The body of an answer to HEAD is left out by the gateway. */
  readonly body: Uint8Array | null;
  /** Whether the plugin answers with the same headers again, so that whoever changes them needs a copy; default false. */
  readonly hasSharedHeaders?: boolean;
}

export type Answer = Rejection | Reply;

/** What a handler gives back: nothing to let the request go on. */
export type Outcome = Answer | undefined;

/** Refuses with the gateway's error page. */
export function reject(
  status: number,
  reason: string,
  options: {
    readonly detail: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly token?: ProxyStatusError;
  },
): Rejection {
  const { detail, headers = {}, token = "http_request_denied" } = options;
  return { kind: "rejection", status, reason, detail, headers, token };
}

const encoder = new TextEncoder();

/** Answers with this, as it is. */
export function reply(
  status: number,
  reason: string,
  options: {
    readonly headers?: HeadersInit;
    /** Text goes out as UTF-8; say so in Content-Type. */
    readonly body?: Uint8Array | string | null;
  } = {},
): Reply {
  const { headers, body = null } = options;
  return {
    kind: "reply",
    status,
    reason,
    headers: new Headers(headers),
    body: typeof body === "string" ? encoder.encode(body) : body,
  };
}
