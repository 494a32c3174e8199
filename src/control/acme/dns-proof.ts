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

/** A record that the provider has taken. */
export interface DnsProof {
  /** Resolves when the name servers have it. */
  appears(): Promise<void>;
  takeDown(): Promise<void>;
}

export interface DnsProofOptions {
  /** Providers that may be used; one that is named alone is used whatever its zones are. */
  readonly providers: readonly DnsProvider[];
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
  await client.present(record).catch((error: unknown) => {
    throw failed(error);
  });
  const timeoutMs = provider.propagation_timeout * 1000;
  return {
    takeDown: () => client.cleanUp(record),
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
    if (isChosen) return { provider, client };
    let zones: readonly string[] = provider.zones;
    if (zones.length === 0)
      zones =
        (await client.zones?.().catch((error: unknown) => {
          unasked = error;
          return [];
        })) ?? [];
    for (const zone of zones) {
      const suffix = zone.toLowerCase().replace(/\.$/, "");
      const fits = fqdn === suffix || fqdn.endsWith(`.${suffix}`);
      if (fits && suffix.length > (best?.length ?? 0))
        best = { provider, client, length: suffix.length };
    }
  }
  if (best !== null) return best;
  const [only] = providers;
  if (only !== undefined && providers.length === 1 && only.zones.length === 0)
    return { provider: only, client: createClient(open(only), { signal }) };
  throw new AcmeFailure(
    providers.length === 0
      ? "there is no DNS provider that is enabled"
      : `no DNS provider may write a zone that ${fqdn} is in`,
    { cause: unasked },
  );
}
