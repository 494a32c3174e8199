// Header fields that tell clients what is left of their limits; knows no count.
import type { Demand, Rule, Verdict } from "./store.ts";

export type Form = "both" | "draft11" | "legacy" | "off";

interface Item {
  readonly rule: Rule;
  readonly verdict: Verdict;
}

/** Whole seconds, and never 0 while there is something to wait for. */
const seconds = (milliseconds: number) => Math.max(0, Math.ceil(milliseconds / 1000));

/** A limit in RateLimit-Policy. */
export function policyOf({
  name,
  capacity,
  algorithm,
  windowMs,
  perSecond,
}: Omit<Rule, "policy">): string {
  const window =
    algorithm === "token_bucket" ? Math.ceil(capacity / perSecond - 1e-6) : windowMs / 1000;
  return `"${name}";q=${capacity};w=${window}`;
}

/**
 * Sets the fields of a form: the two of draft-ietf-httpapi-ratelimit-headers-11, the older ones of the same draft, and those
 * that were there before it. The limit of which least is left comes first, and the older ones are about it.
 */
export function tellLimits(
  {
    demands,
    verdicts,
  }: { readonly demands: readonly Demand[]; readonly verdicts: readonly Verdict[] },
  form: Form,
  set: (name: string, value: string) => void,
): void {
  const items = itemsOf(demands, verdicts);
  const [first] = items;
  if (form === "off" || first === undefined) return;
  const { remaining, resetMs } = first.verdict;
  if (form !== "legacy") {
    let { policy } = first.rule;
    let state = `"${first.rule.name}";r=${remaining};t=${seconds(resetMs)}`;
    for (let at = 1; at < items.length; at++) {
      const { rule, verdict } = items[at] ?? first;
      policy += `, ${rule.policy}`;
      state += `, "${rule.name}";r=${verdict.remaining};t=${seconds(verdict.resetMs)}`;
    }
    set("RateLimit-Policy", policy);
    set("RateLimit", state);
  }
  if (form === "draft11") return;
  const [most, left, reset] = [`${first.rule.capacity}`, `${remaining}`, `${seconds(resetMs)}`];
  set("RateLimit-Limit", most);
  set("RateLimit-Remaining", left);
  set("RateLimit-Reset", reset);
  set("X-RateLimit-Limit", most);
  set("X-RateLimit-Remaining", left);
  set("X-RateLimit-Reset", reset);
}

function itemsOf(demands: readonly Demand[], verdicts: readonly Verdict[]): Item[] {
  const [rule, verdict] = [demands[0]?.rule, verdicts[0]];
  if (demands.length === 1 && rule !== undefined && verdict !== undefined)
    return [{ rule, verdict }];
  const items: Item[] = [];
  for (let at = 0; at < demands.length; at++) {
    const verdict = verdicts[at];
    const rule = demands[at]?.rule;
    if (verdict !== undefined && rule !== undefined) items.push({ rule, verdict });
  }
  return items.sort(byRoom);
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
