// Tests a DNS provider: writes a record, looks it up, deletes it; reports each step.
import type { DnsProvider } from "../../model/dns-provider.ts";
import type { DnsClients } from "./clients.ts";
import { DnsError, failureText } from "./failure.ts";
import { longestZone } from "./names.ts";
import type { DnsLookup } from "./lookup.ts";
import { waitForRecord } from "./propagation.ts";
import type { DnsProviderClient } from "./provider.ts";

export type CheckStatus = "ok" | "warning" | "failed";

export interface Check {
  /** Name of the step. */
  readonly name: string;
  readonly status: CheckStatus;
  /** Text for the user. */
  readonly message: string;
}

export interface TrialReport {
  /** Whether no check failed. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

interface Trial {
  readonly provider: DnsProvider;
  /** Null: list the zones and write nothing. */
  readonly zone: string | null;
  readonly clients: DnsClients;
  readonly lookup: DnsLookup;
}

/** For the whole test, because a request waits for it. */
const TIMEOUT_MS = 90_000;
const LONGEST_WAIT_SECONDS = 30;
const SHOWN_ZONES = 20;

/** Reports problems at the provider instead of throwing. */
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
      const result = await run();
      checks.push(typeof result === "string" ? { name, status: "ok", message: result } : result);
      return true;
    } catch (error) {
      const message = signal.aborted ? "it took too long and was canceled" : failureText(error);
      checks.push({ name, status: "failed", message });
      return false;
    }
  };
  const opened: DnsProviderClient[] = [];
  await step("configuration", async () => {
    opened.push(clients.create(clients.open(provider), { signal }));
    return provider.enabled
      ? "The settings are complete"
      : warn("configuration", "The settings are complete, but the provider is disabled");
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
    return warn(
      "zones",
      "This provider cannot list its zones; set a zone to test it with a record",
    );
  const zones = await client.zones();
  if (zones.length === 0)
    return warn("zones", "The credentials are valid, but have access to no zone");
  const shown = zones.slice(0, SHOWN_ZONES).join(", ");
  const more = zones.length > SHOWN_ZONES ? ` and ${zones.length - SHOWN_ZONES} more` : "";
  return `The credentials are valid for ${shown}${more}`;
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
  // acme-dns has one name only.
  const fqdn = provider.type === "acme-dns" ? zone : `_acme-challenge-test.${zone}`;
  const record = { fqdn, value: `sluice-${crypto.randomUUID()}` };
  let isTouched = false;
  const isWritten = await step("write", async () => {
    const { zones, type } = provider;
    if (type !== "acme-dns" && zones.length > 0 && longestZone(zones, zone) === null)
      throw new DnsError(
        `No record was written: the zones of the provider are ${zones.join(", ")}`,
      );
    isTouched = true;
    await client.present(record);
    return `A TXT record was written at ${fqdn}`;
  });
  if (isWritten)
    await step("visible", async () => {
      const seconds = Math.min(provider.propagation_timeout, LONGEST_WAIT_SECONDS);
      if (seconds === 0) return warn("visible", "Not checked: propagation_timeout is 0");
      try {
        await waitForRecord(lookup, record, { timeoutMs: seconds * 1000, signal });
        return "All name servers of the zone return it";
      } catch (error) {
        return warn("visible", failureText(error));
      }
    });
  if (!isTouched) return;
  // Also after a failure: the record may exist.
  await step("remove", async () => {
    await client.cleanUp(record);
    return "The record was deleted";
  });
}
