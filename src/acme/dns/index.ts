// List of all DNS providers: one line each, no logic.
import type { DnsProviderType } from "../../model/dns-provider.ts";
import acmeDns from "./acme-dns.ts";
import cloudflare from "./cloudflare.ts";
import type { AnyDnsProvider } from "./definition.ts";
import desec from "./desec.ts";
import digitalocean from "./digitalocean.ts";
import duckdns from "./duckdns.ts";
import exec from "./exec.ts";
import gandi from "./gandi.ts";
import hetzner from "./hetzner.ts";
import ovh from "./ovh.ts";
import rfc2136 from "./rfc2136.ts";
import route53 from "./route53.ts";
import webhook from "./webhook.ts";

export const dnsProviders: Readonly<Record<DnsProviderType, AnyDnsProvider>> = {
  cloudflare,
  route53,
  hetzner,
  digitalocean,
  ovh,
  gandi,
  desec,
  duckdns,
  rfc2136,
  "acme-dns": acmeDns,
  webhook,
  exec,
};
