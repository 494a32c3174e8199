// Response schemas of applications; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { upstreamCheckInput } from "../applications/upstream-check.ts";
import { applicationInput } from "../model/application.ts";
import { identity } from "../model/fields.ts";

const ref = (name: string) => t.Unsafe<unknown>({ $ref: `#/components/schemas/${name}` });
const orNull = (schema: TSchema, description: string) =>
  t.Union([schema, t.Null()], { description });

const drift = t.Object(
  {
    kind: t.String({ description: "`service`, `route` and so on" }),
    id: t.String({ description: "ID of the object" }),
    name: orNull(t.String(), "Name of the object"),
    field: orNull(t.String(), "Field that differs; null: the whole object"),
    expected: t.Unknown({ description: "Value set by the application; null: absent" }),
    found: t.Unknown({ description: "Present value; null: absent" }),
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
        service: orNull(ref("Service"), "Its service, without targets; null: deleted"),
        targets: t.Array(ref("Target"), { description: "Targets of the service" }),
        routes: t.Array(ref("Route"), {
          description: "Its route, and a second one for private names if it has both kinds",
        }),
        plugins: t.Array(ref("Plugin"), { description: "Plugin instances for access and HSTS" }),
        certificate: orNull(ref("Certificate"), "The certificate in the configuration"),
        interim_certificate: orNull(
          ref("Certificate"),
          "Self-signed certificate: served until the other is issued, and for private names",
        ),
        drift: t.Array(drift, { description: "Manual changes to its objects" }),
        warnings: t.Array(t.String(), { description: "Problems that prevent it from working" }),
        changes: t.Optional(
          t.Array(t.Unknown(), { description: "With dry_run: what would change, field by field" }),
        ),
      }),
    ],
    { title: "Application" },
  ),
};
