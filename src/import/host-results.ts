// The result of an import for each host: served, changed or closed, and why; knows no program.
import type { Document } from "../control/body.ts";
import type { Output } from "./output.ts";
import type { ReportEntry } from "./report.ts";

export const hostStates = ["closed", "partly_closed", "changed", "imported"] as const;

export interface HostResult {
  /** `*`: any host. */
  readonly host: string;
  /** `partly_closed`: some of its routes respond 503 for maintenance, until another protection is set up. */
  readonly state: (typeof hostStates)[number];
  readonly routes: number;
  readonly closed: number;
  /** Of the first closed or changed route: what is different, with the line of the source where it is known; null: nothing. */
  readonly why: string | null;
}

/** Hosts that need attention first, others by name. */
export function hostResults(
  document: Document,
  { objects }: Output,
  report: readonly ReportEntry[],
): readonly HostResult[] {
  const labels = new Map(objects.map(({ id, label }) => [id, label]));
  const reasons = Map.groupBy(
    report.filter(({ level }) => level !== "imported"),
    ({ what }) => what,
  );
  // `location /x at nginx.conf:3 for shop.test`.
  const byHost = Map.groupBy(
    [...reasons.values()].flat(),
    ({ what }) => / for (\S+)$/.exec(what)?.[1] ?? "",
  );
  const found = new Map<
    string,
    { routes: number; closed: number; lost: string[]; changed: string[] }
  >();
  for (const route of (document["routes"] ?? []) as readonly Document[]) {
    const isClosed = (route["maintenance"] ?? null) !== null;
    const label = labels.get(String(route["id"])) ?? "";
    const [first = "*"] = (route["hosts"] ?? []) as readonly string[];
    const own = [...(reasons.get(label) ?? []), ...(byHost.get(first) ?? [])];
    const whys = own.map(({ why }) => (why.startsWith(CLOSING) ? why.slice(CLOSING.length) : why));
    const hosts = (route["hosts"] ?? []) as readonly string[];
    for (const host of hosts.length === 0 ? ["*"] : hosts) {
      const known = found.get(host) ?? { routes: 0, closed: 0, lost: [], changed: [] };
      found.set(host, known);
      known.routes += 1;
      if (isClosed) known.closed += 1;
      (isClosed ? known.lost : known.changed).push(...whys);
    }
  }
  const results = [...found].map(([host, { routes, closed, lost, changed }]): HostResult => {
    const all = closed > 0 ? lost : changed;
    const state =
      closed === 0
        ? all.length === 0
          ? "imported"
          : "changed"
        : closed === routes
          ? "closed"
          : "partly_closed";
    const others = new Set(all).size - 1;
    const [first = null] = all;
    const why = first === null || others < 1 ? first : `${first} (and ${others} more)`;
    return { host, state, routes, closed, why };
  });
  return results.toSorted(
    (a, b) =>
      hostStates.indexOf(a.state) - hostStates.indexOf(b.state) || (a.host < b.host ? -1 : 1),
  );
}

/** Beginning of the reason for a closed route: its state says it. */
export const CLOSING = "responds with 503 for maintenance until you set up another protection: ";
