// request-size-limit: rejects requests whose body, headers or URL are too large.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject } from "../pdk/response.ts";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, flag, integer } from "../pdk/fields.ts";

const schema = config({
  max_body_bytes: t.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 10_485_760,
    description: "Maximum body size; a body of unknown length is counted while it streams",
  }),
  max_headers_bytes: integer(16_384, {
    minimum: 1,
    maximum: 1_048_576,
    description: "Maximum size of all header names and values, plus four bytes per header",
  }),
  max_uri_bytes: integer(8192, {
    minimum: 1,
    maximum: 1_048_576,
    description: "Maximum length of path and query",
  }),
  require_content_length: flag(false, "Reject bodies without Content-Length with 411"),
});

export default definePlugin({
  name: "request-size-limit",
  summary: "Rejects requests whose body, headers or URL are too large",
  description: `The gateway rejects a declared body that is too large before it forwards a byte: 413. It counts a body of unknown length (chunked,
HTTP/2 without a length) while forwarding it and cuts it off, so that a target may receive the beginning; \`require_content_length\`
rejects those from the start with 411. Headers: 431. Path and query: 414.

Of a gRPC call \`max_body_bytes\` limits each message of the client, not the stream: RESOURCE_EXHAUSTED.

The limits of the listener and of \`settings.limits\` apply too; the lowest one wins.`,
  group: "access",
  order: 8900,
  phases: ["access"],
  scopes: httpScopes,
  config: schema,
  example: { max_body_bytes: 1_048_576 },
  onError: "closed",
  ignoresPath: true,
  create(own) {
    const {
      max_body_bytes: maxBody,
      max_headers_bytes: maxHeaders,
      max_uri_bytes: maxTarget,
    } = own;
    return {
      access(context): Outcome {
        if (context.target.length > maxTarget) return tooLong;
        if (isLonger(context.headers, maxHeaders)) return tooManyFields;
        if (context.isGrpc) {
          context.limitBody(maxBody, tooLarge.reason);
          return undefined;
        }
        const length = context.bodyLength;
        if (length === 0) return undefined;
        if (length > maxBody) return tooLarge;
        if (length < 0) {
          if (own.require_content_length) return lengthRequired;
          context.limitBody(maxBody, tooLarge.reason);
        }
        return undefined;
      },
    };
  },
});

function isLonger(headers: RequestContext["headers"], maxBytes: number): boolean {
  let bytes = 0;
  for (const name in headers) bytes += name.length + (headers[name] ?? "").length + 4;
  return bytes > maxBytes;
}

const tooLong = reject(414, "size.uri", {
  detail: "the URL is too long",
  token: "http_request_error",
});
const tooManyFields = reject(431, "size.headers", {
  detail: "the headers are too large",
  token: "http_request_error",
});
const tooLarge = reject(413, "size.body", {
  detail: "the body is too large",
  token: "http_request_error",
});
const lengthRequired = reject(411, "size.length_required", {
  detail: "a Content-Length is required",
  token: "http_request_error",
});
