// Epochs: which responses a purge or an invalidation has made old; knows neither blocks nor who asks.
import { counters, longs, RULE_TEXT_BYTES, type RuleView, type Views, words } from "./memory.ts";

/** What a rule tests: the resource, its part from the first slash on, or the tags. */
const ruleKinds = { all: 0, prefix: 1, path: 2, resource: 3, tag: 4 } as const;
export type RuleKind = keyof typeof ruleKinds;
const kindNames = Object.keys(ruleKinds) as readonly RuleKind[];

const ruleWords = { state: 0, kind: 1, flags: 2, length: 3 } as const;
/** Swept: no entry is older, but a response may still arrive whose fetch began before. */
const ruleStates = { unused: 0, active: 1, swept: 2 } as const;
const flags = { soft: 1, cut: 2 } as const;

export interface Rule {
  readonly slot: number;
  /** Entries and fetches with an older one are concerned. */
  readonly epoch: number;
  readonly kind: RuleKind;
  /** Empty for `all`. */
  readonly text: string;
  /** The text is only the beginning of one that was too long: the rule concerns all that begin so. */
  readonly isCut: boolean;
  readonly isSoft: boolean;
  /** Not swept yet. */
  readonly isActive: boolean;
}

/** What rules are tested against. */
export interface RuleSubject {
  readonly resource: string;
  readonly tags: readonly string[];
}

/** `path?query` of a resource. */
export const pathOf = (resource: string): string =>
  resource.slice(Math.max(0, resource.indexOf("/")));

const textMatches = (text: string, { text: wanted, isCut }: Rule) =>
  isCut ? text.startsWith(wanted) : text === wanted;

export function matches(rule: Rule, { resource, tags }: RuleSubject): boolean {
  switch (rule.kind) {
    case "all":
      return true;
    case "tag":
      return tags.some((tag) => textMatches(tag, rule));
    case "resource":
      return textMatches(resource, rule);
    case "path":
      return textMatches(pathOf(resource), rule);
    case "prefix": {
      if (rule.text.startsWith("/")) return pathOf(resource).startsWith(rule.text);
      // Without the host in the key, resources have no host.
      return resource.startsWith(resource.startsWith("/") ? pathOf(rule.text) : rule.text);
    }
    default:
      return rule.kind satisfies never;
  }
}

export class Rules {
  readonly #views: Views;
  #version = -1;
  #known: readonly Rule[] = [];

  constructor(views: Views) {
    this.#views = views;
  }

  get epoch(): number {
    return Number(Atomics.load(this.#views.longs, longs.epoch));
  }

  /** Begins an epoch and returns its number. */
  advance(): number {
    return Number(Atomics.add(this.#views.longs, longs.epoch, 1n) + 1n);
  }

  /** Whether lookups have to call `verdict`. */
  get mayConcernEntries(): boolean {
    const { words: memory } = this.#views;
    return (
      Atomics.load(memory, words.activeRules) !== 0 ||
      Atomics.load(memory, words.floorPending) !== 0
    );
  }

  /** Makes all entries and fetches of older epochs old. Needs no lock. */
  raiseFloor(epoch: number): void {
    this.#raise(longs.putFloor, epoch);
    this.#raise(longs.floor, epoch);
    Atomics.add(this.#views.words, words.floorPending, 1);
    this.#changed();
  }

  /** What a sweep has to remove, and how often it was raised until then, which `floorSwept` needs. */
  pendingFloor(): { readonly floor: number; readonly raised: number } {
    const raised = Atomics.load(this.#views.words, words.floorPending);
    return { floor: this.floor, raised };
  }

  get floor(): number {
    return Number(Atomics.load(this.#views.longs, longs.floor));
  }

  /** No entry is older than the floor, unless it was raised since. */
  floorSwept(raised: number): void {
    Atomics.compareExchange(this.#views.words, words.floorPending, raised, 0);
  }

  /** Whether a response must not be stored. `bucket`: of its resource. Exact with the lock. */
  isOutdated(subject: RuleSubject, bucket: number, epoch: number): boolean {
    if (epoch < Number(Atomics.load(this.#views.longs, longs.putFloor))) return true;
    // Other resources of the bucket are refused too, which costs a fetch.
    if ((this.#views.invalidated[bucket] ?? 0) > epoch) return true;
    if ((this.#views.counters[counters.ruleEpoch] ?? 0) <= epoch) return false;
    const rules = this.current();
    return rules === null || rules.some((rule) => epoch < rule.epoch && matches(rule, subject));
  }

  /** What became of an entry. */
  verdict(subject: RuleSubject, epoch: number): "live" | "soft" | "dead" {
    if (epoch < this.floor) return "dead";
    const rules = this.current();
    if (rules === null) return "dead";
    let verdict: "live" | "soft" = "live";
    for (const rule of rules) {
      if (!rule.isActive || epoch >= rule.epoch || !matches(rule, subject)) continue;
      if (!rule.isSoft) return "dead";
      verdict = "soft";
    }
    return verdict;
  }

  /** All rules, the swept ones too; null: they are just changing. */
  current(): readonly Rule[] | null {
    for (let attempt = 0; attempt < 3; attempt++) {
      const version = Atomics.load(this.#views.words, words.ruleVersion);
      if (version === this.#version) return this.#known;
      const rules = this.#views.rules.flatMap((view, slot) => readRule(view, slot) ?? []);
      if (Atomics.load(this.#views.words, words.ruleVersion) !== version) continue;
      this.#version = version;
      this.#known = rules;
      return rules;
    }
    return null;
  }

  /** Nothing is left that rules and the floor could concern. Needs the lock. */
  clear(): void {
    for (const view of this.#views.rules) view.words[ruleWords.state] = ruleStates.unused;
    this.#countActive();
    Atomics.store(this.#views.words, words.floorPending, 0);
    this.#changed();
  }

  /** Adds a rule and begins its epoch; null: all slots have rules that are not swept. Needs the lock. */
  add(kind: RuleKind, text: string, isSoft: boolean): Rule | null {
    const slot = this.#freeSlot();
    const view = this.#views.rules[slot];
    if (view === undefined) return null;
    view.words[ruleWords.state] = ruleStates.unused;
    this.#changed();
    const { read, written } = new TextEncoder().encodeInto(text, view.text);
    const isCut = read < text.length;
    const epoch = this.advance();
    view.words[ruleWords.kind] = ruleKinds[kind];
    view.words[ruleWords.flags] = (isSoft ? flags.soft : 0) | (isCut ? flags.cut : 0);
    view.words[ruleWords.length] = written;
    view.epoch[0] = epoch;
    Atomics.store(view.words, ruleWords.state, ruleStates.active);
    this.#views.counters[counters.ruleEpoch] = epoch;
    this.#countActive();
    this.#changed();
    return readRule(view, slot);
  }

  /** Entries that the rules concern are gone. Needs the lock. */
  swept(rules: readonly Rule[]): void {
    for (const { slot } of rules) {
      const view = this.#views.rules[slot];
      if (view !== undefined) Atomics.store(view.words, ruleWords.state, ruleStates.swept);
    }
    this.#countActive();
    this.#changed();
  }

  #freeSlot(): number {
    const { rules } = this.#views;
    const stateOf = (view: RuleView) => view.words[ruleWords.state];
    const unused = rules.findIndex((view) => stateOf(view) === ruleStates.unused);
    if (unused !== -1) return unused;
    let oldest = -1;
    for (const [slot, view] of rules.entries()) {
      const isOlder = oldest === -1 || (view.epoch[0] ?? 0) < (rules[oldest]?.epoch[0] ?? 0);
      if (stateOf(view) === ruleStates.swept && isOlder) oldest = slot;
    }
    // What began before it can no longer be tested: none of that is stored.
    if (oldest !== -1) this.#raise(longs.putFloor, rules[oldest]?.epoch[0] ?? 0);
    return oldest;
  }

  #countActive(): void {
    const active = this.#views.rules.filter(
      (view) => view.words[ruleWords.state] === ruleStates.active,
    );
    Atomics.store(this.#views.words, words.activeRules, active.length);
  }

  #changed(): void {
    Atomics.add(this.#views.words, words.ruleVersion, 1);
    Atomics.notify(this.#views.words, words.ruleVersion);
  }

  #raise(index: number, epoch: number): void {
    const memory = this.#views.longs;
    const next = BigInt(epoch);
    for (;;) {
      const before = Atomics.load(memory, index);
      if (before >= next || Atomics.compareExchange(memory, index, before, next) === before) return;
    }
  }
}

function readRule(view: RuleView, slot: number): Rule | null {
  const state = Atomics.load(view.words, ruleWords.state);
  if (state === ruleStates.unused) return null;
  const set = view.words[ruleWords.flags] ?? 0;
  const length = Math.min(RULE_TEXT_BYTES, view.words[ruleWords.length] ?? 0);
  return {
    slot,
    epoch: view.epoch[0] ?? 0,
    kind: kindNames[view.words[ruleWords.kind] ?? 0] ?? "all",
    text: view.text.toString("utf8", 0, length),
    isCut: (set & flags.cut) !== 0,
    isSoft: (set & flags.soft) !== 0,
    isActive: state === ruleStates.active,
  };
}
