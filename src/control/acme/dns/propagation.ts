// Waits until a TXT record can be seen where CAs look: at all servers of its zone. Knows no provider.
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

/** Throws a DnsError that names a server without the record when the time is over. */
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
        `the TXT record of ${record.fqdn} is not there after ${timeoutMs / 1000} s: ${missing}`,
      );
    await sleep(pause, undefined, signal === undefined ? {} : { signal });
  }
}

/** Who does not have it, in words; null: all that answer have it. */
async function missingAt(lookup: DnsLookup, record: TxtRecord): Promise<string | null> {
  try {
    const servers = await lookup.serversOf(record.fqdn);
    const found = await Promise.all(
      (servers ?? []).map((server) => stateAt(lookup, server, record)),
    );
    const lacking = found.find(({ state }) => state === "missing");
    if (lacking !== undefined) return `${lacking.name} does not have it`;
    if (found.some(({ state }) => state === "there")) return null;
    // Where outgoing questions to foreign servers are not let through, the usual ones have to do.
    const values = await lookup.txt(record.fqdn);
    return values.includes(record.value) ? null : "the name servers of this machine do not find it";
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
