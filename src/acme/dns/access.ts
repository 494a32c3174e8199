// Creates the control plane's access to DNS: clients of the providers and lookups; decides nothing.
import type { SecretBox } from "../../crypto/secret-box.ts";
import type { Changes } from "../../control/change.ts";
import type { DnsParts } from "../dns-proof.ts";
import { createDnsParts, DnsClients } from "./clients.ts";
import { dnsProviders } from "./index.ts";
import { DnsLookup } from "./lookup.ts";

export interface DnsAccessOptions {
  readonly box: SecretBox;
  /** Name servers to query; default: the system's. */
  readonly dnsServers?: readonly string[];
  /** Programs that the provider exec may run; default: none. */
  readonly dnsPrograms?: readonly string[];
}

export interface DnsAccess {
  readonly definitions: typeof dnsProviders;
  readonly clients: DnsClients;
  readonly lookup: DnsLookup;
  readonly programs: readonly string[];
  /** For DNS-01 challenges. */
  readonly parts: DnsParts;
}

export function createDnsAccess(options: DnsAccessOptions, changes: Changes): DnsAccess {
  const { box, dnsServers = [], dnsPrograms: programs = [] } = options;
  const definitions = dnsProviders;
  const lookup = new DnsLookup(dnsServers);
  const clients = new DnsClients({
    definitions,
    box,
    programs,
    dialer: changes.dialer,
    config: () => changes.config,
  });
  return { definitions, clients, lookup, programs, parts: createDnsParts(clients, lookup) };
}
