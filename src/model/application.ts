// An application: a service, its targets, routes and certificate as one object; knows none of them.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo, schemaRef, since } from "./resource.ts";
import { applicationPolicies } from "./application-policies.ts";
import {
  cidr,
  flag,
  group,
  type Identity,
  labels,
  listOf,
  name,
  nullable,
  oneOf,
} from "./fields.ts";
import { inlineTargetInput } from "./target.ts";
import { asHostName } from "./host-name.ts";
import { decode } from "./decode.ts";
import { maintenanceFields } from "./maintenance.ts";

const maintenanceOptions = group(maintenanceFields, "The page, and who does not get it");

const shared = {
  // The objects it creates have slightly longer names.
  name: { ...name("Unique name; its service and route get the same name"), maxLength: 112 },
  domains: t.Array(
    asHostName(
      t.String({
        minLength: 1,
        maxLength: 253,
        pattern:
          "^(?:\\*\\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$",
        errorMessage: "must be a host name, or one behind *.",
        description: "Host name, or one behind *.",
      }),
    ),
    { minItems: 1, maxItems: 100, description: "Host names of the application" },
  ),
  upstream: nullable(
    asHostName(
      t.String({
        maxLength: 2048,
        pattern: "^https?://[^\\s/?#@]+(?:/[^\\s?#]*)?$",
        errorMessage:
          "must be an http:// or https:// address without query, such as http://10.0.0.5:3000",
      }),
    ),
    "URL of the upstream; null: see `targets`, or `policies.redirect` of the path / sends all requests elsewhere",
  ),
  targets: t.Array(inlineTargetInput, {
    default: [],
    maxItems: 1000,
    description: "Upstream targets, instead of `upstream`; reached over plain HTTP",
  }),
  host_header: since(
    5,
    nullable(
      asHostName(t.String({ minLength: 1, maxLength: 255 })),
      "Host sent upstream: `preserve` (the client's), `target` (the target's host and port), or a name; null: as its service has it, `preserve` in a new one",
    ),
  ),
  https: group(
    {
      mode: oneOf(["off", "auto", "acme", "certificate", "local_ca"], {
        default: "auto",
        description:
          "auto: ACME issues certificates for public names, the local CA those for private ones; acme: always ACME; certificate: the certificate in certificate_id; local_ca: the local CA for all names, with the redirect",
      }),
      certificate_id: nullable(
        refersTo("certificates", t.String({ minLength: 1, maxLength: 128 })),
        "ID or name of a certificate, for the mode certificate",
      ),
      redirect: flag(true, "Redirect plain requests to HTTPS once there is a valid certificate"),
      hsts: flag(
        false,
        "Send Strict-Transport-Security (RFC 6797), once there is a valid certificate",
      ),
    },
    "HTTPS",
  ),
  access: oneOf(["public", "private", "networks"], {
    default: "public",
    description:
      "private: only clients from private networks, this machine and `networks`; networks: only those in `networks`",
  }),
  networks: since(9, listOf(cidr, "Networks that may use it, for the access private and networks")),
  policies: applicationPolicies,
  maintenance: flag(false, "Respond to every request with the maintenance page"),
  maintenance_options: since(9, {
    ...maintenanceOptions,
    default: decode(maintenanceOptions, {}),
  }),
  enabled: flag(true, "Whether it is served"),
  ...labels,
};

/** What clients send. */
export const applicationInput = t.Object(shared, {
  additionalProperties: false,
  title: "Application",
});

const names = (description: string) => listOf(t.String(), description);
const id = t.Optional(t.String());

/** One object that the application created. The field named after its collection holds its id. */
const part = t.Object(
  {
    /** What it is to the application: `service`, `route`. */
    role: t.String({ maxLength: 512 }),
    service_id: id,
    target_id: id,
    route_id: id,
    plugin_id: id,
    certificate_id: id,
    /** Its fields when the application created or last changed it. */
    fields: t.Record(t.String(), t.Unknown()),
  },
  { additionalProperties: false },
);

/** What is stored: the objects it created, and their fields at that time. */
export const applicationRecord = t.Object(
  {
    ...shared,
    https_state: group(
      {
        ordered: names("Names with an ACME certificate"),
        local: since(7, names("Names with a certificate of the local CA")),
        self_signed: names("Names with a self-signed certificate"),
        secured: flag(false, "Whether a valid certificate was present"),
      },
      "State of HTTPS",
    ),
    parts: t.Array(part, { default: [], maxItems: 2000 }),
  },
  { additionalProperties: false },
);

export type ApplicationInput = Static<typeof applicationInput>;
export type Application = Readonly<Static<typeof applicationRecord>> & Identity;
export type ApplicationPart = Readonly<Static<typeof part>>;
export type HttpsState = Application["https_state"];

/** The collections of parts, each with the field that holds the id. */
const idFields = {
  services: "service_id",
  targets: "target_id",
  routes: "route_id",
  plugins: "plugin_id",
  certificates: "certificate_id",
} as const;

export type PartCollection = keyof typeof idFields;

export interface PartReference {
  readonly collection: PartCollection;
  readonly id: string;
}

export function createPart(
  role: string,
  { collection, id: own }: PartReference,
  fields: Record<string, unknown>,
): ApplicationPart {
  return { role, [idFields[collection]]: own, fields };
}

/** Null for one that names nothing. */
export function referenceOf(of: ApplicationPart): PartReference | null {
  for (const [collection, field] of Object.entries(idFields)) {
    const own = of[field];
    if (own !== undefined) return { collection: collection as PartCollection, id: own };
  }
  return null;
}

const drift = t.Object(
  {
    kind: t.String({ description: "`service`, `route` and so on" }),
    id: t.String({ description: "ID of the object" }),
    name: t.Union([t.String(), t.Null()], { description: "Name of the object" }),
    field: t.Union([t.String(), t.Null()], {
      description: "Field that differs; null: the whole object",
    }),
    expected: t.Unknown({ description: "Value set by the application; null: absent" }),
    found: t.Unknown({ description: "Present value; null: absent" }),
  },
  { title: "Drift" },
);

const refOrNull = (schema: string, description: string) =>
  t.Union([schemaRef(schema), t.Null()], { description });

export const applications = defineResource<Application>({
  word: "application",
  input: applicationInput,
  record: applicationRecord,
  nameField: "name",
  owns: {
    collections: Object.keys(idFields),
    of: ({ parts }) => parts.flatMap((one) => referenceOf(one) ?? []),
  },
  api: {
    tag: "Applications",
    schema: "Application",
    view: t.Object({
      service: refOrNull("Service", "Its service, without targets; null: deleted"),
      targets: t.Array(schemaRef("Target"), { description: "Targets of the service" }),
      routes: t.Array(schemaRef("Route"), {
        description: "Its route, and a second one for private names if it has both kinds",
      }),
      plugins: t.Array(schemaRef("Plugin"), {
        description: "Plugin instances for access, HSTS and policies",
      }),
      certificate: refOrNull("Certificate", "The certificate in the configuration"),
      interim_certificate: refOrNull(
        "Certificate",
        "Self-signed certificate: served until the other is issued, and for private names",
      ),
      drift: t.Array(drift, { description: "Manual changes to its objects" }),
      warnings: t.Array(t.String(), { description: "Problems that prevent it from working" }),
      changes: t.Optional(
        t.Array(t.Unknown(), { description: "With dry_run: what would change, field by field" }),
      ),
    }),
  },
});
