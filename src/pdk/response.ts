// The responses with which a plugin ends the chain; knows no connection.
import { FieldList, type FieldsInit } from "../http/field-list.ts";
import type { ProxyStatusError } from "../http/proxy-status.ts";

export { FieldList };

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
  /** Copied before the gateway or another plugin changes them. */
  readonly headers: Headers;
  /** Null: none. The gateway drops the body in response to HEAD. With a source the headers need Content-Length. */
  readonly body: Uint8Array | BodySource | null;
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

/** The fields of those replies that were made here, for which nothing has to make `Headers`. */
const fieldsOfReplies = new WeakMap<object, FieldList>();

/** Of a plugin's reply, names as it has written them where it has not asked for `headers`. */
export const fieldsOfReply = (given: Pick<Reply, "headers">): FieldList =>
  fieldsOfReplies.get(given) ?? FieldList.ofHeaders(given.headers);

/** Responds with this, as it is. */
export function reply(
  status: number,
  reason: string,
  options: {
    readonly headers?: FieldsInit;
    /** Text is sent as UTF-8; say so in Content-Type. */
    readonly body?: Uint8Array | string | null;
  } = {},
): Reply {
  const { headers, body = null } = options;
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  return replyWith(status, reason, { fields: new FieldList(headers), body: bytes });
}

/** The same with a list of fields, which nothing changes afterwards: other replies may have it too. */
export function replyWith(
  status: number,
  reason: string,
  { fields, body }: { readonly fields: FieldList; readonly body: Reply["body"] },
): Reply {
  const made: Reply = {
    kind: "reply",
    status,
    reason,
    get headers() {
      // A change of them is one of this reply alone.
      const own = fields.copy();
      fieldsOfReplies.set(made, own);
      Object.defineProperty(made, "headers", { value: own.headers, enumerable: true });
      return own.headers;
    },
    body,
  };
  fieldsOfReplies.set(made, fields);
  return made;
}
