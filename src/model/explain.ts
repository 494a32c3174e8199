// A hypothetical request whose routing the API explains; knows nothing of routes.
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
      description: "Absolute URL, http or https, as a client would request it",
    }),
    headers: t.Record(t.String(), t.String({ maxLength: 16_384 }), {
      default: {},
      description: "Headers of the request; Host defaults to the host of url",
    }),
    client_ip: t.String({
      default: "127.0.0.1",
      maxLength: 64,
      description: "IP address of the client",
    }),
  },
  { additionalProperties: false, title: "ExplainedRequest" },
);

export type ExplainInput = Static<typeof explainInput>;
