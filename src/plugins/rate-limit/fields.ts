// Header fields that tell clients what is left of their limits; knows no count.
import type { Demand, Rule, Verdict } from "./store.ts";

export type Form = "both" | "draft11" | "legacy" | "off";

interface Item {
  readonly rule: Rule;
  readonly verdict: Verdict;
}

/** Whole seconds, and never 0 while there is something to wait for. */
const seconds = (milliseconds: number) => Math.max(0, Math.ceil(milliseconds / 1000));

const policyOf = ({ name, capacity, algorithm, windowMs, perSecond }: Rule) => {
  const window =
    algorithm === "token_bucket" ? Math.ceil(capacity / perSecond - 1e-6) : windowMs / 1000;
  return `"${name}";q=${capacity};w=${window}`;
};

/**
 * Names and values, the limit of which least is left first. The two of draft-ietf-httpapi-ratelimit-headers-11, the older
 * ones of the same draft, and those that were there before it.
 */
export function limitFields(
  demands: readonly Demand[],
  verdicts: readonly Verdict[],
  form: Form,
): Record<string, string> {
  const fields: Record<string, string> = {};
  const items = itemsOf(demands, verdicts);
  const [first] = items;
  if (form === "off" || first === undefined) return fields;
  if (form !== "legacy") {
    let policy = "";
    let state = "";
    for (const { rule, verdict } of items) {
      const comma = policy === "" ? "" : ", ";
      policy += comma + policyOf(rule);
      state += `${comma}"${rule.name}";r=${verdict.remaining};t=${seconds(verdict.resetMs)}`;
    }
    fields["RateLimit-Policy"] = policy;
    fields["RateLimit"] = state;
  }
  if (form !== "draft11")
    for (const prefix of ["RateLimit", "X-RateLimit"]) {
      fields[`${prefix}-Limit`] = String(first.rule.capacity);
      fields[`${prefix}-Remaining`] = String(first.verdict.remaining);
      fields[`${prefix}-Reset`] = String(seconds(first.verdict.resetMs));
    }
  return fields;
}

function itemsOf(demands: readonly Demand[], verdicts: readonly Verdict[]): Item[] {
  const items: Item[] = [];
  for (const [at, { rule }] of demands.entries()) {
    const verdict = verdicts[at];
    if (verdict !== undefined) items.push({ rule, verdict });
  }
  return items.length < 2 ? items : items.sort(byRoom);
}

function byRoom(a: Item, b: Item): number {
  if (a.verdict.isAllowed !== b.verdict.isAllowed) return a.verdict.isAllowed ? 1 : -1;
  return a.verdict.remaining - b.verdict.remaining || b.verdict.resetMs - a.verdict.resetMs;
}

/** When a refused client may come again: once there is room in all limits; at least a second. */
export function retryAfter(verdicts: readonly Verdict[]): string {
  let most = 1;
  for (const { isAllowed, resetMs } of verdicts)
    if (!isAllowed) most = Math.max(most, seconds(resetMs));
  return String(most);
}
