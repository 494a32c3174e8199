// An application: a service, its targets, routes and certificate that were made together; knows none of them.
import { type Static, Type as t } from "@sinclair/typebox";
import { flag, group, type Identity, labels, listOf, name, nullable, oneOf } from "./fields.ts";
import { inlineTargetInput } from "./target.ts";

const shared = {
  name: name("Unique name; its service and route are called the same"),
  domains: t.Array(
    t.String({ minLength: 1, maxLength: 253, description: "Host name, or one behind *." }),
    { minItems: 1, maxItems: 100, description: "Names that people reach it by" },
  ),
  upstream: nullable(
    t.String({
      maxLength: 2048,
      pattern: "^https?://[^\\s/?#@]+(?:/[^\\s?#]*)?$",
      errorMessage:
        "must be an http:// or https:// address without query, such as http://10.0.0.5:3000",
    }),
    "Where it runs; null: `targets` says so",
  ),
  targets: t.Array(inlineTargetInput, {
    default: [],
    maxItems: 1000,
    description: "Where it runs, in the place of `upstream`",
  }),
  https: group(
    {
      mode: oneOf(["off", "auto", "acme", "certificate"], {
        default: "auto",
        description:
          "auto: a certificate is ordered for public names, others get one that is signed here; acme: always ordered; certificate: the one named",
      }),
      certificate_id: nullable(
        t.String({ minLength: 1, maxLength: 128 }),
        "Id or name of a certificate, for the mode certificate",
      ),
      redirect: flag(true, "Send plain requests to HTTPS once there is a valid certificate"),
      hsts: flag(false, "Tell browsers to use HTTPS only (RFC 6797)"),
    },
    "HTTPS",
  ),
  access: oneOf(["public", "private"], {
    default: "public",
    description: "private: only clients from private networks and this machine",
  }),
  maintenance: flag(false, "Answer everybody that it is under maintenance"),
  enabled: flag(true, "Whether it is served"),
  ...labels,
};

/** What clients send. */
export const applicationInput = t.Object(shared, {
  additionalProperties: false,
  title: "Application",
});

/** What is stored: which objects it made, and how they were when it did. */
export const applicationRecord = t.Object(
  {
    ...shared,
    service_id: nullable(t.String(), "Its service"),
    target_ids: listOf(t.String(), "Its targets"),
    route_ids: listOf(t.String(), "Its routes"),
    plugin_ids: listOf(t.String(), "Its plugin instances"),
    certificate_id: nullable(t.String(), "The certificate that it made"),
  },
  { additionalProperties: false },
);

export type ApplicationInput = Static<typeof applicationInput>;
export type Application = Readonly<Static<typeof applicationRecord>> & Identity;
