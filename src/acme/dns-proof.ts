// dns-01 challenges: finds the record's name and the provider that may write it; knows no provider's API.
import type { DnsProvider } from "../model/dns-provider.ts";
import type {
  CreateDnsClient,
  DnsProviderClient,
  OpenedDnsProvider,
  TxtRecord,
  WaitForPropagation,
} from "./dns/provider.ts";
import { AcmeFailure } from "./failure.ts";

export interface DnsParts {
  readonly createClient: CreateDnsClient;
  readonly waitForPropagation: WaitForPropagation;
  /** A provider with readable secrets. */
  readonly open: (provider: DnsProvider) => OpenedDnsProvider;
  /** Target of a CNAME; null: the name is no alias. */
  readonly aliasOf: (name: string) => Promise<string | null>;
}

const MAX_ALIASES = 8;
/** How long a stop may wait for the removal of records. */
const LAST_REQUEST_MS = 3000;

/** A record that the provider has accepted. */
export interface DnsProof {
  /** Resolves when the name servers return it. */
  appears(): Promise<void>;
  takeDown(): Promise<void>;
}

export interface DnsProofOptions {
  /** Candidate providers. */
  readonly providers: readonly DnsProvider[];
  /** Whether the certificate names the provider: its zones are not discovered, but configured ones apply. */
  readonly isChosen: boolean;
  readonly signal: AbortSignal;
}

/** Resolves when the provider has accepted the record. `name`: without `*.`. */
export async function putUpRecord(
  proof: { readonly name: string; readonly text: string },
  options: DnsProofOptions,
  parts: DnsParts,
): Promise<DnsProof> {
  const fqdn = await followAliases(`_acme-challenge.${proof.name}`, parts);
  const record: TxtRecord = { fqdn, value: proof.text };
  const { provider, client } = await chooseProvider(fqdn, options, parts);
  const failed = (error: unknown) => {
    const { message } = error as Error;
    return new AcmeFailure(`DNS provider "${provider.name}": ${fqdn}: ${message}`, {
      cause: error,
    });
  };
  const takeDown = async () => {
    try {
      await client.cleanUp(record);
    } catch (error) {
      if (!options.signal.aborted) throw error;
      // The gateway stops, or the certificate was deleted: this cancels all requests of the client, and the record would stay.
      const signal = AbortSignal.timeout(LAST_REQUEST_MS);
      await parts.createClient(parts.open(provider), { signal }).cleanUp(record);
    }
  };
  await client.present(record).catch(async (error: unknown) => {
    // After a cancellation or timeout the record may exist.
    await takeDown().catch(() => undefined);
    throw failed(error);
  });
  const timeoutMs = provider.propagation_timeout * 1000;
  return {
    takeDown,
    async appears() {
      if (timeoutMs === 0) return;
      await parts
        .waitForPropagation(record, { timeoutMs, signal: options.signal })
        .catch((error: unknown) => {
          throw failed(error);
        });
    },
  };
}

/** RFC 8555 section 8.4: CAs follow aliases, so that the record can be in another zone. */
async function followAliases(name: string, { aliasOf }: DnsParts): Promise<string> {
  let at = name;
  for (let hop = 0; hop < MAX_ALIASES; hop++) {
    const next = await aliasOf(at);
    if (next === null) return at;
    at = next.toLowerCase().replace(/\.$/, "");
  }
  throw new AcmeFailure(`${name}: has a chain of more than ${MAX_ALIASES} aliases`);
}

interface Chosen {
  readonly provider: DnsProvider;
  readonly client: DnsProviderClient;
}

/** The provider with the longest matching zone. */
async function chooseProvider(
  fqdn: string,
  { providers, isChosen, signal }: DnsProofOptions,
  { createClient, open }: DnsParts,
): Promise<Chosen> {
  let best: (Chosen & { readonly length: number }) | null = null;
  let unasked: unknown = null;
  for (const provider of providers) {
    const client = createClient(open(provider), { signal });
    if (
      isChosen &&
      (provider.zones.length === 0 || provider.zones.some((zone) => isIn(fqdn, zone)))
    )
      return { provider, client };
    let zones: readonly string[] = provider.zones;
    if (zones.length === 0)
      zones =
        (await client.zones?.().catch((error: unknown) => {
          unasked = error;
          return [];
        })) ?? [];
    for (const zone of zones) {
      const { length } = zone.replace(/\.$/, "");
      if (isIn(fqdn, zone) && length > (best?.length ?? 0)) best = { provider, client, length };
    }
  }
  if (best !== null) return best;
  const [only] = providers;
  if (isChosen && only !== undefined)
    throw new AcmeFailure(
      `DNS provider "${only.name}" may not write the zone of ${fqdn}: its zones are ${only.zones.join(", ")}`,
    );
  if (only !== undefined && providers.length === 1 && only.zones.length === 0)
    return { provider: only, client: createClient(open(only), { signal }) };
  throw new AcmeFailure(
    providers.length === 0
      ? "no DNS provider is enabled"
      : `no DNS provider may write the zone of ${fqdn}`,
    { cause: unasked },
  );
}

function isIn(fqdn: string, zone: string): boolean {
  const suffix = zone.toLowerCase().replace(/\.$/, "");
  return fqdn === suffix || fqdn.endsWith(`.${suffix}`);
}
