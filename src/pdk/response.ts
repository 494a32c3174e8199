// The responses with which a plugin ends the chain; knows no connection.
import type { ProxyStatusError } from "../http/proxy-status.ts";

/** The client gets the gateway's error page, in a media type that it accepts. */
export interface Rejection {
  readonly kind: "rejection";
  /** 400 to 599. */
  readonly status: number;
  /** For logs and metrics: `auth.key.missing`. Never shown to the client. */
  readonly reason: string;
  /** Half a sentence for the client, as in "the API key is missing": no secrets, no internals. */
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
  /** RFC 9209 section 2.3. */
  readonly token: ProxyStatusError;
}

/** A body that the gateway reads at the pace of the client: of a file, for example. */
export interface BodySource {
  /** What all calls of `read` together return. */
  readonly byteLength: number;
  /**
   * The next bytes, which the gateway then owns; null: the end. Not called again before it resolves. When it rejects, the gateway
   * aborts the response.
   */
  read(): Promise<Uint8Array | null>;
  /** The gateway reads no more: the client has everything, went away, or gets no body. May be called several times. */
  close(): void;
}

/** A complete response. */
export interface Reply {
  readonly kind: "reply";
  readonly status: number;
  readonly reason: string;
  readonly headers: Headers;
  /** Null: none. The gateway drops the body in response to HEAD. With a source the headers need Content-Length. */
  readonly body: Uint8Array | BodySource | null;
  /** Whether the plugin reuses these headers, so that the gateway must copy them before a change; default false. */
  readonly hasSharedHeaders?: boolean;
}

export type PluginResponse = Rejection | Reply;

/** The result of a handler: undefined continues the chain. */
export type Outcome = PluginResponse | undefined;

/** Rejects the request with the gateway's error page. */
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

/** Whether an error is one of `reject`, with which a plugin has failed a body. */
export const isRejection = (error: unknown): error is Rejection =>
  typeof error === "object" && error !== null && "kind" in error && error.kind === "rejection";

const encoder = new TextEncoder();

/** Responds with this, as it is. */
export function reply(
  status: number,
  reason: string,
  options: {
    readonly headers?: HeadersInit;
    /** Text is sent as UTF-8; say so in Content-Type. */
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
