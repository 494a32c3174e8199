// What the gateway counts of its present clients and in its log, and whether it is nothing when they have left; knows no traffic.
import type { Gateway } from "../support/gateway.ts";
import { readMetrics } from "../support/metrics-text.ts";
import { DEADLINE_MS } from "../support/poll.ts";

/** They are 0 without clients. */
const GAUGES = [
  "sluice_requests_in_flight",
  "sluice_websockets_open",
  "sluice_stream_connections_open",
  "sluice_target_requests_in_flight",
];

const PAUSE_MS = 500;

/** What is still counted a while after the last client has left: nothing, unless something is lost. */
export async function leftOver(gateway: Gateway): Promise<Map<string, number>> {
  const until = performance.now() + DEADLINE_MS;
  for (;;) {
    const left = await present(gateway);
    if (left.size === 0 || performance.now() > until) return left;
    await Bun.sleep(PAUSE_MS);
  }
}

async function present(gateway: Gateway): Promise<Map<string, number>> {
  const text = await (await gateway.api("GET", "/metrics")).text();
  const metrics = readMetrics(text, "prometheus");
  const values = GAUGES.map((name) => [name, metrics.sum(name)] as const);
  return new Map(values.filter(([, value]) => value !== 0));
}

/** How often each message of the log is there that asks for attention. */
export function warnings({ log }: Gateway): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { level, message } of log) {
    if (level !== "warn" && level !== "error") continue;
    const text = `${level}: ${message}`;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return counts;
}
