// Creates clients of stored DNS providers with their secrets decrypted; knows no type of provider by name.
import type { Dialer } from "../../dialer/dialer.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import type { DnsProvider } from "../../model/dns-provider.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { openConfig } from "../../snapshot/plugin-config.ts";
import type { AnyDnsProvider } from "./definition.ts";
import type { DnsParts } from "../dns-proof.ts";
import type { DnsLookup } from "./lookup.ts";
import { waitForRecord } from "./propagation.ts";
import type { DnsClientParts, DnsProviderClient, OpenedDnsProvider } from "./provider.ts";

export interface DnsClientsOptions {
  readonly definitions: Readonly<Record<DnsProvider["type"], AnyDnsProvider>>;
  readonly box: SecretBox;
  readonly config: () => GatewayConfig;
  /** Programs that the provider exec may run, from the command line. */
  readonly programs: readonly string[];
  readonly dialer: Dialer;
}

/** Holds state that all clients share: create one instance. */
export class DnsClients {
  readonly #options: DnsClientsOptions;
  readonly #remembered = new Map<string, string>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: DnsClientsOptions) {
    this.#options = options;
  }

  /** The provider with its secrets in plain text. Throws an ApiError when the stored configuration is invalid. */
  open(provider: DnsProvider): OpenedDnsProvider {
    const { definitions, box, config } = this.#options;
    const { secrets } = config();
    const openSealed = (sealed: string) => box.open(sealed);
    const definition = definitions[provider.type];
    return { ...provider, config: openConfig(provider, definition, { secrets, openSealed }) };
  }

  create(
    provider: OpenedDnsProvider,
    given: Pick<DnsClientParts, "signal"> = {},
  ): DnsProviderClient {
    const { definitions, programs, dialer } = this.#options;
    return definitions[provider.type].create(provider.config, {
      zones: provider.zones,
      programs,
      remembered: this.#remembered,
      inTurn: (key, run) => this.#inTurn(`${provider.id} ${key}`, run),
      dialer,
      ...given,
    });
  }

  #inTurn<T>(key: string, run: () => Promise<T>): Promise<T> {
    const result = (this.#turns.get(key) ?? Promise.resolve()).then(run);
    // A failed task must not block the next ones.
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    this.#turns.set(key, ended);
    void ended.then(() => {
      if (this.#turns.get(key) === ended) this.#turns.delete(key);
    });
    return result;
  }
}

/** Creates the record and waits until the name servers return it. */
export const createDnsParts = (clients: DnsClients, lookup: DnsLookup): DnsParts => ({
  open: (provider) => clients.open(provider),
  createClient: (provider, parts) => clients.create(provider, parts),
  waitForPropagation: (record, options) => waitForRecord(lookup, record, options),
  // Without a response to the CNAME query, try the name itself: the provider may have it.
  aliasOf: (name) => lookup.cname(name).catch(() => null),
});
