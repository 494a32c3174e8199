// The decisions that a local API of CrowdSec has in force, bounded in number; knows no request.
import type { Pace } from "../../pace.ts";
import { type NetworkEntry, networkKey } from "../../pdk/net.ts";

/** The types of decisions that deny; a captcha cannot be shown. In the order of the reasons. */
export const decisionTypes = ["ban", "captcha"] as const;
type DecisionType = (typeof decisionTypes)[number];

/** A response of `GET /v1/decisions/stream`, as far as it is used. */
export interface StreamResponse {
  readonly added: readonly unknown[];
  readonly deleted: readonly unknown[];
}

/** Throws an Error with a message for the log. */
export function readStream(body: Uint8Array): StreamResponse {
  let response: unknown;
  try {
    response = JSON.parse(new TextDecoder().decode(body));
  } catch {
    // The runtime's message quotes the response.
    throw new Error("the response is not JSON");
  }
  const { new: added, deleted } = (response ?? {}) as Readonly<Record<string, unknown>>;
  // The API writes an empty list as null.
  const isList = (value: unknown) => value === null || Array.isArray(value);
  if (!isList(added) || !isList(deleted)) throw new Error("the response is no stream of decisions");
  return { added: (added ?? []) as unknown[], deleted: (deleted ?? []) as unknown[] };
}

export class Decisions {
  readonly #all = new Map<string, NetworkEntry>();
  readonly #now: () => number;
  #dropped = 0;

  /** `now`: milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Decisions beyond the limit since the last `clear`. */
  get dropped(): number {
    return this.#dropped;
  }

  entries(): Iterable<NetworkEntry> {
    return this.#all.values();
  }

  clear(): void {
    this.#all.clear();
    this.#dropped = 0;
  }

  /** Applies a response; decisions above `max` are dropped. Resolves to whether anything has changed. */
  async apply(
    { added, deleted }: StreamResponse,
    { max, pace }: { readonly max: number; readonly pace: Pace },
  ): Promise<boolean> {
    const before = this.#all.size;
    this.#removeEnded();
    let hasChanged = this.#all.size !== before;
    for (const each of deleted) {
      if (this.#all.delete(idOf(each))) hasChanged = true;
      if (pace.isDue()) await pace.rest();
    }
    for (const each of added) {
      const entry = this.#entryOf(each);
      const id = idOf(each);
      if (entry === null) continue;
      if (this.#all.size >= max && !this.#all.has(id)) this.#dropped++;
      else this.#all.set(id, entry);
      hasChanged = true;
      if (pace.isDue()) await pace.rest();
    }
    return hasChanged;
  }

  #removeEnded(): void {
    const now = this.#now() / 1000;
    for (const [id, { until }] of this.#all) if (until <= now) this.#all.delete(id);
  }

  /** Null: it concerns no address, has ended, or is not understood. */
  #entryOf(decision: unknown): NetworkEntry | null {
    const { scope, type, value, duration, simulated } = fieldsOf(decision);
    if (simulated === true || typeof value !== "string") return null;
    if (!/^(?:ip|range)$/i.test(String(scope))) return null;
    const kind = decisionTypes.indexOf(String(type).toLowerCase() as DecisionType);
    const key = networkKey(value);
    const left = secondsOf(duration);
    if (kind < 0 || key === null || left === null || left <= 0) return null;
    const until = Math.min(LAST_END, Math.ceil(this.#now() / 1000 + left));
    return { key, value: kind, until };
  }
}

/** Below `NEVER`. */
const LAST_END = 0xffff_fffe;

const fieldsOf = (value: unknown) =>
  (typeof value === "object" && value !== null ? value : {}) as Readonly<Record<string, unknown>>;

/** Decisions without an id are known by what they say. */
function idOf(decision: unknown): string {
  const { id, scope, type, value } = fieldsOf(decision);
  return typeof id === "number" ? String(id) : `${String(scope)} ${String(type)} ${String(value)}`;
}

const UNITS: Readonly<Record<string, number>> = {
  h: 3600,
  m: 60,
  s: 1,
  ms: 1e-3,
  us: 1e-6,
  µs: 1e-6,
  μs: 1e-6,
  ns: 1e-9,
};

/** A duration as Go prints it (`3h59m49.5s`), in seconds; null when it is none. */
export function secondsOf(duration: unknown): number | null {
  if (typeof duration !== "string" || duration.length > 64) return null;
  const sign = duration.startsWith("-") ? -1 : 1;
  const text = duration.replace(/^[+-]/, "");
  if (text === "0") return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|μs|ns))+$/.test(text)) return null;
  let seconds = 0;
  for (const [, amount, unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|μs|ns)/g))
    seconds += Number(amount) * (UNITS[unit] ?? 0);
  return sign * seconds;
}
