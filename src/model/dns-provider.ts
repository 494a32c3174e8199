// Access to the DNS zones of a provider, for dns-01 challenges; knows no provider's API.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource } from "./resource.ts";
import { destination } from "./destination.ts";
import {
  ALL_KEPT,
  type FieldForm,
  flag,
  type Identity,
  integer,
  labels,
  listOf,
  name,
  oneOf,
} from "./fields.ts";
import { asHostName } from "./host-name.ts";

export const dnsProviderTypes = [
  "cloudflare",
  "route53",
  "hetzner",
  "digitalocean",
  "ovh",
  "gandi",
  "desec",
  "duckdns",
  "rfc2136",
  "acme-dns",
  "webhook",
  "exec",
] as const;
export type DnsProviderType = (typeof dnsProviderTypes)[number];

const shared = {
  name: name("Unique name", { group: "labels" }),
  type: destination(
    oneOf(dnsProviderTypes, {
      description: "Provider; exec: a program on this machine",
      form: { title: "Provider", help: "", order: -1 },
    }),
  ),
  zones: listOf(
    asHostName(t.String({ minLength: 1, maxLength: 253 })),
    "Zones that it may write, longest match wins; empty: discovered from the provider",
    {
      maxItems: 200,
      form: {
        help: "Zones that it is used for. Empty: automatic",
        example: "example.com",
        group: "zones",
      },
    },
  ),
  propagation_timeout: integer(120, {
    minimum: 0,
    maximum: 3600,
    description:
      "Seconds to wait until the zone's authoritative name servers return the record; 0: not checked",
    form: {
      help: "Maximum wait until all name servers of the zone serve the record",
      zero: "not checked",
      group: "zones",
    },
  }),
  enabled: flag(true, "Whether certificates may use it", {
    help: "Off: the gateway writes no records with it",
    group: "labels",
  }),
  ...labels,
};

/** What clients send: `config` is checked against the type's own schema. */
export const dnsProviderInput = t.Object(
  {
    ...shared,
    config: t.Record(t.String(), t.Unknown(), {
      default: {},
      description: `Settings of the provider. ${ALL_KEPT}. {"$secret": "name"} refers to a named secret`,
    }),
  },
  {
    additionalProperties: false,
    title: "DNS provider",
    form: {
      groups: [
        { id: "provider", title: "Provider" },
        { id: "zones", title: "Zones" },
        { id: "labels", title: "Name and notes" },
      ],
    } satisfies FieldForm,
  },
);

export type DnsProviderInput = Static<typeof dnsProviderInput>;

/** As it is stored: secrets in `config` are `{"sealed": ...}` or `{"$secret": ...}`. */
export type DnsProvider = Readonly<DnsProviderInput> & Identity;

export const dnsProviders = defineResource<DnsProvider>({
  word: "DNS provider",
  input: dnsProviderInput,
  nameField: "name",
  holdsSecrets: true,
  sendsSecrets: true,
  configKind: "type",
  api: { tag: "DNS providers", schema: "DnsProvider" },
});
