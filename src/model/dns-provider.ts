// Access to the DNS zones of a provider, for dns-01 challenges; knows no provider's API.
import { type Static, Type as t } from "@sinclair/typebox";
import { destination } from "./destination.ts";
import { ALL_KEPT, flag, type Identity, integer, labels, listOf, name, oneOf } from "./fields.ts";

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
  name: name("Unique name"),
  type: destination(
    oneOf(dnsProviderTypes, { description: "Provider; exec: a program on this machine" }),
  ),
  zones: listOf(
    t.String({ minLength: 1, maxLength: 253 }),
    "Zones that it may write, longest match wins; empty: discovered from the provider",
    { maxItems: 200 },
  ),
  propagation_timeout: integer(120, {
    minimum: 0,
    maximum: 3600,
    description:
      "Seconds to wait until the zone's authoritative name servers return the record; 0: not checked",
  }),
  enabled: flag(true, "Whether certificates may use it"),
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
  { additionalProperties: false, title: "DNS provider" },
);

export type DnsProviderInput = Static<typeof dnsProviderInput>;

/** As it is stored: secrets in `config` are `{"sealed": ...}` or `{"$secret": ...}`. */
export type DnsProvider = Readonly<DnsProviderInput> & Identity;
