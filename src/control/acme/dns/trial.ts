// Tries a DNS provider out: writes a record, looks for it, takes it away again; says in words what happened.
import type { DnsProvider } from "../../../model/dns-provider.ts";
import type { DnsClients } from "./clients.ts";
import { DnsError, failureText } from "./failure.ts";
import { longestZone } from "./names.ts";
import type { DnsLookup } from "./lookup.ts";
import { waitForRecord } from "./propagation.ts";
import type { DnsProviderClient } from "./provider.ts";

export type CheckStatus = "ok" | "warning" | "failed";

export interface Check {
  /** What was looked at, in one word. */
  readonly name: string;
  readonly status: CheckStatus;
  /** For people. */
  readonly message: string;
}

export interface TrialReport {
  /** Whether no check failed. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

interface Trial {
  readonly provider: DnsProvider;
  /** Null: the zones are listed, and nothing is written. */
  readonly zone: string | null;
  readonly clients: DnsClients;
  readonly lookup: DnsLookup;
}

/** Of the whole trial: somebody waits for the answer. */
const TIMEOUT_MS = 90_000;
const LONGEST_WAIT_SECONDS = 30;
const SHOWN_ZONES = 20;

/** Never throws for what is wrong at the provider: that is what the report is for. */
export async function tryProvider({
  provider,
  zone,
  clients,
  lookup,
}: Trial): Promise<TrialReport> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const checks: Check[] = [];
  const step = async (name: string, run: () => Promise<Check | string>): Promise<boolean> => {
    try {
      const told = await run();
      checks.push(typeof told === "string" ? { name, status: "ok", message: told } : told);
      return true;
    } catch (error) {
      const message = signal.aborted ? "it took too long and was called off" : failureText(error);
      checks.push({ name, status: "failed", message });
      return false;
    }
  };
  const opened: DnsProviderClient[] = [];
  await step("configuration", async () => {
    opened.push(clients.create(clients.open(provider), { signal }));
    return provider.enabled
      ? "The settings are complete"
      : warn("configuration", "The settings are complete, but the provider is switched off");
  });
  const [client] = opened;
  if (client !== undefined) {
    if (zone === null) await step("zones", () => listZones(client));
    else await tryZone({ client, zone, provider, lookup, signal }, step);
  }
  return { ok: checks.every(({ status }) => status !== "failed"), checks };
}

const warn = (name: string, message: string): Check => ({ name, status: "warning", message });

async function listZones(client: DnsProviderClient): Promise<Check | string> {
  if (client.zones === undefined)
    return warn("zones", "This provider cannot list its zones; name one to write a record in it");
  const zones = await client.zones();
  if (zones.length === 0) return warn("zones", "The credentials are accepted, but see no zone");
  const shown = zones.slice(0, SHOWN_ZONES).join(", ");
  const more = zones.length > SHOWN_ZONES ? ` and ${zones.length - SHOWN_ZONES} more` : "";
  return `The credentials are accepted and see ${shown}${more}`;
}

interface ZoneTrial {
  readonly client: DnsProviderClient;
  readonly zone: string;
  readonly provider: DnsProvider;
  readonly lookup: DnsLookup;
  readonly signal: AbortSignal;
}

async function tryZone(
  { client, zone, provider, lookup, signal }: ZoneTrial,
  step: (name: string, run: () => Promise<Check | string>) => Promise<boolean>,
): Promise<void> {
  // acme-dns knows one name only.
  const fqdn = provider.type === "acme-dns" ? zone : `_acme-challenge-test.${zone}`;
  const record = { fqdn, value: `sluice-${crypto.randomUUID()}` };
  let isTouched = false;
  const isWritten = await step("write", async () => {
    const { zones, type } = provider;
    if (type !== "acme-dns" && zones.length > 0 && longestZone(zones, zone) === null)
      throw new DnsError(`Nothing is written: its zones are ${zones.join(", ")}`);
    isTouched = true;
    await client.present(record);
    return `A TXT record was written under ${fqdn}`;
  });
  if (isWritten)
    await step("visible", async () => {
      const seconds = Math.min(provider.propagation_timeout, LONGEST_WAIT_SECONDS);
      if (seconds === 0) return warn("visible", "Not looked for: propagation_timeout is 0");
      try {
        await waitForRecord(lookup, record, { timeoutMs: seconds * 1000, signal });
        return "The name servers of the zone have it";
      } catch (error) {
        return warn("visible", failureText(error));
      }
    });
  if (!isTouched) return;
  // Also after a failure: it may have been written nevertheless.
  await step("remove", async () => {
    await client.cleanUp(record);
    return "The record was taken away again";
  });
}
