// The share of 5xx responses in a time window, in all and by service and route; knows no sink.
import type { Alert } from "../../model/alert.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import type { CountedTraffic } from "../metrics/series-rows.ts";
import type { NoticeObject, Signal } from "./notice.ts";

interface Count {
  readonly requests: number;
  readonly errors: number;
}

/** Counts of one interval. */
interface Slot {
  readonly at: number;
  readonly counts: ReadonlyMap<string, Count>;
}

/** The longest window that an alert may have, in milliseconds. */
const LONGEST_MS = 3_600_000;
const TOTAL = "total";
const NOTHING: Count = { requests: 0, errors: 0 };

const plus = (one: Count, other: Count): Count => ({
  requests: one.requests + other.requests,
  errors: one.errors + other.errors,
});

export class ErrorShares {
  #before: ReadonlyMap<string, Count> | null = null;
  #slots: Slot[] = [];

  /** Resets, for when no alert needs it. */
  forget(): void {
    this.#before = null;
    this.#slots = [];
  }

  /** Adds the counts since the last call; the first call only sets the baseline. Stores only `subjects`. */
  count(rows: readonly CountedTraffic[], subjects: ReadonlySet<string>, now: number): void {
    const before = this.#before;
    const after = new Map<string, Count>();
    const counts = new Map<string, Count>();
    for (const { owner, traffic } of rows) {
      if (owner.kind === "stream_route" || owner.kind === "listener") continue;
      const whole = countOf(traffic);
      const key = `${owner.kind} ${owner.id} ${owner.serviceId}`;
      after.set(key, whole);
      const since = sinceOf(whole, before?.get(key));
      if (before === null || since.requests === 0) continue;
      for (const subject of [TOTAL, `route ${owner.id}`, `service ${owner.serviceId}`])
        if (subjects.has(subject)) counts.set(subject, plus(counts.get(subject) ?? NOTHING, since));
    }
    this.#before = after;
    if (before !== null) this.#slots.push({ at: now, counts });
    // A clock that was set back must not retain slots forever.
    this.#slots = this.#slots.filter(({ at }) => at > now - LONGEST_MS && at <= now);
  }

  /** The state of each subject of the alert; skips subjects with too few requests. */
  judge(alert: Alert, config: GatewayConfig, now: number): readonly Signal[] {
    const { percent, window_seconds: seconds, min_requests: least } = alert.threshold;
    return subjectsOf(alert).flatMap((subject) => {
      const sum = this.#sum(subject, now - seconds * 1000);
      const share = sum.requests === 0 ? 0 : (sum.errors / sum.requests) * 100;
      if (sum.requests < least && sum.requests > 0) return [];
      const isOver = sum.requests === 0 || share < percent;
      return [toSignal({ subject, sum, share, isOver }, alert, config)];
    });
  }

  #sum(subject: string, from: number): Count {
    let sum = NOTHING;
    for (const { at, counts } of this.#slots)
      if (at > from) sum = plus(sum, counts.get(subject) ?? NOTHING);
    return sum;
  }
}

/** The subjects of an alert. */
export function subjectsOf({ service_ids, route_ids }: Alert): readonly string[] {
  const subjects = [
    ...service_ids.map((id) => `service ${id}`),
    ...route_ids.map((id) => `route ${id}`),
  ];
  return subjects.length === 0 ? [TOTAL] : subjects;
}

/** The incident key of a subject. */
export const shareKey = (subject: string) => `share ${subject}`;

function toSignal(
  judged: { subject: string; sum: Count; share: number; isOver: boolean },
  { threshold }: Alert,
  config: GatewayConfig,
): Signal {
  const { subject, sum, share, isOver } = judged;
  const object = objectOf(subject, config);
  const what = object.kind === "gateway" ? "all requests" : `${object.kind} "${object.name}"`;
  const shown = Math.round(share * 10) / 10;
  return {
    event: "error_share",
    key: shareKey(subject),
    state: isOver ? "over" : "begun",
    object,
    serviceId: null,
    title: isOver
      ? `Error share is back to normal: ${what}`
      : `Too many errors: ${shown} % of the responses, ${what}`,
    message:
      `${sum.errors} of ${sum.requests} responses in the last ${threshold.window_seconds} s were 5xx; ` +
      `the threshold is ${threshold.percent} %.`,
    isAlwaysTold: false,
    validUntil: null,
  };
}

function objectOf(subject: string, { services, routes }: GatewayConfig): NoticeObject {
  const [kind, id = ""] = subject.split(" ");
  if (kind === "service") return { kind, id, name: services.get(id)?.name ?? id };
  if (kind === "route") return { kind, id, name: routes.get(id)?.name ?? id };
  return { kind: "gateway", id: "", name: "gateway" };
}

function countOf({ counters, codes }: CountedTraffic["traffic"]): Count {
  let errors = 0;
  for (const [code, count] of codes) if (code.startsWith("5")) errors += count;
  return { requests: counters.ended, errors };
}

/** A lower count means that the row was reset. */
function sinceOf(after: Count, before: Count | undefined): Count {
  if (before === undefined || after.requests < before.requests) return after;
  return {
    requests: after.requests - before.requests,
    errors: Math.max(0, after.errors - before.errors),
  };
}
