// Header fields with the remaining quota; knows no counter.
import type { Demand, Rule, Verdict } from "./store.ts";

export type Form = "both" | "draft11" | "legacy" | "off";

interface Item {
  readonly rule: Rule;
  readonly verdict: Verdict;
}

/** Whole seconds, at least 1 while there is a wait. */
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

/** Names and values of header fields. */
export interface Fields {
  readonly names: readonly string[];
  readonly values: readonly string[];
}

const DRAFT = ["RateLimit-Policy", "RateLimit"];
const LEGACY = [
  ...["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
  ...["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
];
const NAMES = { draft11: DRAFT, legacy: LEGACY, both: [...DRAFT, ...LEGACY] } as const;

const NO_FIELDS: Fields = { names: [], values: [] };

/** Formats the header fields of limits. */
export class LimitFields {
  readonly #form: Form;
  /** The last fields of a limit: consecutive clients often have the same remaining quota. */
  #rule: Rule | null = null;
  #remaining = 0;
  #resetS = 0;
  #last = NO_FIELDS;

  constructor(form: Form) {
    this.#form = form;
  }

  /**
   * The fields of draft-ietf-httpapi-ratelimit-headers-11, those of earlier drafts and the older X- ones, depending on the
   * form. The limit with the least remaining quota comes first, and the older fields describe it.
   */
  of(demands: readonly Demand[], verdicts: readonly Verdict[]): Fields {
    const rule = demands[0]?.rule;
    const verdict = verdicts[0];
    if (this.#form === "off" || rule === undefined || verdict === undefined) return NO_FIELDS;
    if (demands.length > 1) return fieldsOf(itemsOf(demands, verdicts), this.#form);
    const { remaining } = verdict;
    const resetS = seconds(verdict.resetMs);
    if (rule !== this.#rule || remaining !== this.#remaining || resetS !== this.#resetS) {
      this.#last = fieldsOf([{ rule, verdict }], this.#form);
      this.#rule = rule;
      this.#remaining = remaining;
      this.#resetS = resetS;
    }
    return this.#last;
  }
}

function fieldsOf(items: readonly Item[], form: Exclude<Form, "off">): Fields {
  const [first] = items;
  if (first === undefined) return NO_FIELDS;
  const { rule, verdict } = first;
  const left = `${verdict.remaining}`;
  const reset = `${seconds(verdict.resetMs)}`;
  const names = NAMES[form];
  const most = `${rule.capacity}`;
  const legacy = [most, left, reset, most, left, reset];
  if (form === "legacy") return { names, values: legacy };
  let { policy } = rule;
  let state = `"${rule.name}";r=${left};t=${reset}`;
  for (const other of items.slice(1)) {
    policy += `, ${other.rule.policy}`;
    state += `, "${other.rule.name}";r=${other.verdict.remaining};t=${seconds(other.verdict.resetMs)}`;
  }
  const draft = [policy, state];
  return { names, values: form === "both" ? [...draft, ...legacy] : draft };
}

function itemsOf(demands: readonly Demand[], verdicts: readonly Verdict[]): Item[] {
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

/** Retry-After: when all limits have room again; at least a second. */
export function retryAfter(verdicts: readonly Verdict[]): string {
  let most = 1;
  for (const { isAllowed, resetMs } of verdicts)
    if (!isAllowed) most = Math.max(most, seconds(resetMs));
  return String(most);
}
