// grpc-web: lets browsers call gRPC services, by translating gRPC-Web.
import { Type as t } from "@sinclair/typebox";
import type { BodyTransform, RequestContext, ResponseDraft } from "../pdk/context.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { config } from "../pdk/fields.ts";
import { encodeGrpcMessage, grpcStatusOfHttp, isGrpcContentType } from "../pdk/http.ts";
import { reject, type Rejection } from "../pdk/response.ts";
import { Base64Decoder, Base64Error } from "./grpc-web/base64.ts";
import { MessageCheck, type MessageProblem, trailerFrame } from "./grpc-web/messages.ts";

const schema = config({
  max_message_bytes: t.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 4_194_304,
    description:
      "Maximum size of a message of a request, as its prefix declares it; 0: no limit. Responses have that of the route, grpc_max_message_bytes",
  }),
});

export default definePlugin({
  name: "grpc-web",
  summary: "Lets browsers call gRPC services (gRPC-Web)",
  description: `Browsers cannot read trailers, where gRPC has its status. Clients of gRPC-Web get them as the last part of the body, and for them
the gateway translates requests with the Content-Type \`application/grpc-web\` or \`application/grpc-web-text\` (base64) to gRPC, with
any suffix such as \`+proto\` or \`+json\`. Other requests stay as they are. The service has the protocol \`grpc\` or \`grpcs\`; the
listener needs no engine for it, because the client needs no trailers.

Unary calls and server streaming work; browsers cannot send streams. Messages pass as they arrive, compressed ones too. \`grpc-timeout\`
and metadata reach the service, \`X-Grpc-Web\` does not. Each response has the HTTP status 200 and a gRPC status, also when the gateway
or a plugin rejects the request: 401 becomes UNAUTHENTICATED, 403 PERMISSION_DENIED, 413 and 429 RESOURCE_EXHAUSTED, 502 and 503
UNAVAILABLE, 504 DEADLINE_EXCEEDED. Malformed messages and base64 end the request with INTERNAL, messages that are too large with
RESOURCE_EXHAUSTED.

For pages of another origin, add the plugin [cors](cors.md) with these origins; its defaults allow the method POST and all request
headers. Pages read metadata of a response only when \`expose_headers\` names it. Clients that expect a status without a body in the
headers also need \`grpc-status\` and \`grpc-message\` there.

A service that speaks gRPC-Web itself needs no plugin: do not set it globally beside such services.`,
  group: "content",
  order: 9450,
  phases: ["pre_auth", "response", "body"],
  scopes: authScopes,
  config: schema,
  example: { max_message_bytes: 1_048_576 },
  onError: "closed",
  create: ({ max_message_bytes: maxBytes }) => ({
    preAuth(context) {
      const call = callOf(context);
      if (call !== null) translateRequest(context, call, maxBytes);
      return undefined;
    },
    response(context, draft) {
      const call = callOf(context);
      if (call !== null) translateResponse(call, draft);
    },
  }),
});

interface Call {
  /** `+proto`; empty: none. */
  readonly suffix: string;
  /** Whether the request is base64. */
  readonly isText: boolean;
  /** Whether the client expects base64. */
  readonly wantsText: boolean;
}

const GRPC_WEB = /^application\/grpc-web(-text)?(\+[a-z0-9.-]{1,32})?[ \t]*(?:;|$)/i;

/** Null: not gRPC-Web. */
function callOf(context: RequestContext): Call | null {
  const type = context.method === "POST" ? context.header("content-type") : null;
  const [found, text, suffix = ""] = type === null ? [] : (GRPC_WEB.exec(type) ?? []);
  if (found === undefined) return null;
  const isText = text !== undefined;
  const accept = context.header("accept")?.toLowerCase() ?? "";
  const wantsText = accept.includes("application/grpc-web")
    ? accept.includes("application/grpc-web-text")
    : isText;
  return { suffix, isText, wantsText };
}

/** Fields of the translated protocol, and codings of the whole body, which gRPC does not have. */
const NOT_FOR_GRPC = ["x-grpc-web", "accept", "accept-encoding"];

function translateRequest(context: RequestContext, call: Call, maxBytes: number): void {
  const { upstream } = context;
  upstream.setGrpc(`application/grpc${call.suffix}`);
  for (const name of NOT_FOR_GRPC) upstream.removeHeader(name);
  context.passBody((body) => checked(body, call, maxBytes), { changesLength: call.isText });
}

/** Fails with a rejection, with which the gateway responds. */
function checked(
  body: ReadableStream<Uint8Array>,
  { isText }: Call,
  maxBytes: number,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = isText ? new Base64Decoder() : null;
  const messages = new MessageCheck(maxBytes);
  const attempt = (run: () => MessageProblem | null): void => {
    const problem = orMalformed(run);
    if (problem === null) return;
    void reader.cancel();
    throw problem === "malformed" ? malformed : tooLarge;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let bytes: Uint8Array = EMPTY;
        while (bytes.byteLength === 0) {
          const { done, value } = await reader.read();
          if (done) {
            attempt(() => {
              decoder?.end();
              return messages.end();
            });
            controller.close();
            return;
          }
          attempt(() => {
            bytes = decoder === null ? value : decoder.push(value);
            return messages.push(bytes);
          });
        }
        controller.enqueue(bytes);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

const EMPTY = new Uint8Array(0);

function orMalformed(run: () => MessageProblem | null): MessageProblem | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof Base64Error) return "malformed";
    throw error;
  }
}

const rejection = (status: number, reason: string, detail: string): Rejection =>
  reject(status, reason, { detail, token: "http_request_error" });

const malformed = rejection(400, "grpc-web.malformed", "the gRPC-Web request is malformed");
const tooLarge = rejection(413, "grpc-web.too_large", "a message of the request is too large");

/** Headers that describe another body than the translated one. */
const OF_THE_BODY = ["content-length", "content-encoding", "content-language", "etag", "trailer"];
const STATUS_FIELDS = ["grpc-status", "grpc-message", "grpc-status-details-bin"];

function translateResponse(call: Call, draft: ResponseDraft): void {
  const { headers, status } = draft;
  const type = headers.get("content-type");
  // A plugin may respond in gRPC-Web itself.
  if (type !== null && GRPC_WEB.test(type)) return;
  const isGrpc = isGrpcContentType(type);
  const suffix = isGrpc ? (/\+[a-z0-9.-]+/i.exec(type ?? "")?.[0] ?? call.suffix) : call.suffix;
  headers.set("content-type", `application/grpc-web${call.wantsText ? "-text" : ""}${suffix}`);
  for (const name of OF_THE_BODY) headers.delete(name);
  draft.status = 200;
  if (isGrpc && !headers.has("grpc-status")) {
    draft.transformBody(new WebBody(call.wantsText, status));
    return;
  }
  const fields: [string, string][] = [];
  for (const name of STATUS_FIELDS) {
    const value = headers.get(name);
    headers.delete(name);
    if (value !== null) fields.push([name, value]);
  }
  if (fields[0]?.[0] !== "grpc-status") fields.splice(0, Infinity, ...failed(status, draft.error));
  draft.replaceBody(encoded(trailerFrame(fields), call.wantsText));
}

/** The gRPC status of a response that is not gRPC. */
function failed(status: number, error: ResponseDraft["error"]): [string, string][] {
  const isSuccess = status < 300;
  const detail =
    error?.detail ?? (isSuccess ? "the response is not gRPC" : `HTTP status ${status}`);
  return [
    ["grpc-status", String(error?.grpcStatus ?? grpcStatusOfHttp(status))],
    ["grpc-message", encodeGrpcMessage(detail)],
  ];
}

/** Each flushed part of a text has its own padding, or a client would wait for the rest of a message. */
const encoded = (bytes: Uint8Array, isText: boolean): Uint8Array =>
  isText ? Buffer.from(Buffer.from(bytes).toString("base64"), "latin1") : bytes;

/** The body of a gRPC response, followed by its trailers. */
class WebBody implements BodyTransform {
  readonly #isText: boolean;
  readonly #messages = new MessageCheck(0);
  /** HTTP status, for a response without a gRPC status. */
  readonly #status: number;

  constructor(isText: boolean, status: number) {
    this.#isText = isText;
    this.#status = status;
  }

  push(chunk: Uint8Array): Uint8Array {
    this.#messages.push(chunk);
    return encoded(chunk, this.#isText);
  }

  end(trailers: Headers): Uint8Array {
    // The client would read the trailers as a part of the message: it must see that the response is incomplete.
    if (this.#messages.end() !== null) throw new Error("the response ends within a message");
    const fields = [...trailers];
    for (const [name] of fields) trailers.delete(name);
    if (!fields.some(([name]) => name === "grpc-status")) fields.push(...missing(this.#status));
    return encoded(trailerFrame(fields), this.#isText);
  }
}

const missing = (status: number): [string, string][] => [
  ["grpc-status", String(grpcStatusOfHttp(status))],
  ["grpc-message", "the response ended without a gRPC status"],
];
