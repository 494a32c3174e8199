// A request that nobody has sent, to be explained; knows nothing of routes.
import { type Static, Type as t } from "@sinclair/typebox";

export const explainInput = t.Object(
  {
    method: t.String({
      default: "GET",
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$",
      errorMessage: "must be a method such as GET",
      description: "Method of the request",
    }),
    url: t.String({
      minLength: 1,
      maxLength: 16_384,
      description: "Absolute address, http or https, as a client would ask for it",
    }),
    headers: t.Record(t.String(), t.String({ maxLength: 16_384 }), {
      default: {},
      description: "Header fields of the request; Host is that of the url unless it is given",
    }),
    client_ip: t.String({
      default: "127.0.0.1",
      maxLength: 64,
      description: "Address that the request comes from",
    }),
  },
  { additionalProperties: false, title: "ExplainedRequest" },
);

export type ExplainInput = Static<typeof explainInput>;
