// Schemas of applications as the management API shows them; used for the description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { upstreamCheckInput } from "../control/applications/upstream-check.ts";
import { applicationInput } from "../model/application.ts";
import { identity } from "../model/fields.ts";

const ref = (name: string) => t.Unsafe<unknown>({ $ref: `#/components/schemas/${name}` });
const orNull = (schema: TSchema, description: string) =>
  t.Union([schema, t.Null()], { description });

const drift = t.Object(
  {
    kind: t.String({ description: "`service`, `route` and so on" }),
    id: t.String({ description: "Id of the object" }),
    name: orNull(t.String(), "What it is called"),
    field: orNull(t.String(), "Which field differs; null: the object as a whole"),
    expected: t.Unknown({ description: "As the application made it; null: it did not" }),
    found: t.Unknown({ description: "As it is; null: it is gone" }),
  },
  { title: "Drift" },
);

export const applicationSchemas: Readonly<Record<string, TSchema>> = {
  ApplicationInput: applicationInput,
  UpstreamCheckInput: upstreamCheckInput,
  Application: t.Composite(
    [
      t.Object(identity),
      t.Omit(applicationInput, ["targets"]),
      t.Object({
        service: orNull(ref("Service"), "Its service, without targets; null: somebody deleted it"),
        targets: t.Array(ref("Target"), { description: "Targets of its service" }),
        routes: t.Array(ref("Route"), {
          description: "Its route, and one for private names if it has both kinds",
        }),
        plugins: t.Array(ref("Plugin"), { description: "Instances for access and HSTS" }),
        certificate: orNull(ref("Certificate"), "The certificate that it is to have"),
        interim_certificate: orNull(
          ref("Certificate"),
          "Self-signed: presented until the other is there, and for private names",
        ),
        drift: t.Array(drift, { description: "What was changed by hand about its parts" }),
        warnings: t.Array(t.String(), { description: "What is missing" }),
        changes: t.Optional(
          t.Array(t.Unknown(), { description: "With dry_run: what would change, field by field" }),
        ),
      }),
    ],
    { title: "Application" },
  ),
};
