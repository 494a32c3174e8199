// Proves names with TXT records: finds where the record belongs and who may write it; knows no provider's API.
import type { DnsProvider } from "../../model/dns-provider.ts";
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
  /** Where a name is delegated to; null: it is no alias. */
  readonly aliasOf: (name: string) => Promise<string | null>;
}

const MAX_ALIASES = 8;
/** How long a stop may wait for records to be taken down. */
const LAST_REQUEST_MS = 3000;

/** A record that the provider has taken. */
export interface DnsProof {
  /** Resolves when the name servers have it. */
  appears(): Promise<void>;
  takeDown(): Promise<void>;
}

export interface DnsProofOptions {
  /** Providers that may be used. */
  readonly providers: readonly DnsProvider[];
  /** Whether the only one was named: it is not asked for its zones, but those that somebody has set hold. */
  readonly isChosen: boolean;
  readonly signal: AbortSignal;
}

/** Resolves when the provider has taken the record. `name`: without `*.`. */
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
      // The gateway stops, or the certificate is gone: all of the client's requests are called off, and the record would stay.
      const signal = AbortSignal.timeout(LAST_REQUEST_MS);
      await parts.createClient(parts.open(provider), { signal }).cleanUp(record);
    }
  };
  await client.present(record).catch(async (error: unknown) => {
    // Called off half-way, or without an answer in time, it may be there.
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

/** RFC 8555 section 8.4 lets authorities follow aliases, so that the zone of a name need not be written. */
async function followAliases(name: string, { aliasOf }: DnsParts): Promise<string> {
  let at = name;
  for (let hop = 0; hop < MAX_ALIASES; hop++) {
    const next = await aliasOf(at);
    if (next === null) return at;
    at = next.toLowerCase().replace(/\.$/, "");
  }
  throw new AcmeFailure(`${name}: more than ${MAX_ALIASES} aliases lead on from here`);
}

interface Chosen {
  readonly provider: DnsProvider;
  readonly client: DnsProviderClient;
}

/** The one whose zone is the longest that the name ends in. */
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
      ? "there is no DNS provider that is enabled"
      : `no DNS provider may write a zone that ${fqdn} is in`,
    { cause: unasked },
  );
}

function isIn(fqdn: string, zone: string): boolean {
  const suffix = zone.toLowerCase().replace(/\.$/, "");
  return fqdn === suffix || fqdn.endsWith(`.${suffix}`);
}
