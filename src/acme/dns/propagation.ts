// Waits until all name servers of the zone return a TXT record, because CAs query them. Knows no provider.
import { setTimeout as sleep } from "node:timers/promises";
import { DnsError } from "./failure.ts";
import type { DnsLookup, NameServer } from "./lookup.ts";
import type { TxtRecord } from "./provider.ts";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5000;

export interface PropagationOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Throws a DnsError that names a server without the record after `timeoutMs`. */
export async function waitForRecord(
  lookup: DnsLookup,
  record: TxtRecord,
  { timeoutMs, signal }: PropagationOptions,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
    const missing = await missingAt(lookup, record);
    if (missing === null) return;
    if (performance.now() + pause > deadline)
      throw new DnsError(
        `the TXT record of ${record.fqdn} is not visible after ${timeoutMs / 1000} s: ${missing}`,
      );
    await sleep(pause, undefined, signal === undefined ? {} : { signal });
  }
}

/** Describes a server without the record; null: all responding servers have it. */
async function missingAt(lookup: DnsLookup, record: TxtRecord): Promise<string | null> {
  try {
    const servers = await lookup.serversOf(record.fqdn);
    const found = await Promise.all(
      (servers ?? []).map((server) => stateAt(lookup, server, record)),
    );
    const lacking = found.find(({ state }) => state === "missing");
    if (lacking !== undefined) return `${lacking.name} does not have it`;
    if (found.some(({ state }) => state === "there")) return null;
    // A firewall may block queries to other name servers: use the system's.
    const values = await lookup.txt(record.fqdn);
    return values.includes(record.value)
      ? null
      : "the name servers of this machine do not return it";
  } catch (error) {
    if (!(error instanceof DnsError)) throw error;
    return error.message;
  }
}

async function stateAt(lookup: DnsLookup, { name, addresses }: NameServer, record: TxtRecord) {
  for (const address of addresses) {
    try {
      const values = await lookup.txt(record.fqdn, [address]);
      return { name, state: values.includes(record.value) ? "there" : "missing" } as const;
    } catch (error) {
      if (!(error instanceof DnsError)) throw error;
    }
  }
  return { name, state: "silent" } as const;
}
