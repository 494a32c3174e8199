// A log in memory, which loses requests and answers where a test wants it to.
import type { Entry } from "../../../src/fleet/entry.ts";
import {
  AppendInDoubt,
  type EntrySource,
  type LogPage,
  SourceUnreachable,
  type Term,
} from "../../../src/fleet/source.ts";

/**
 * What happens to the next append: `request` and `answer` are lost on their way, a `late` request arrives after the next one,
 * `crash` ends the writer after it was stored.
 */
export type AppendFault = "none" | "request" | "late" | "unreachable" | "answer" | "crash";

/** The writer ends: nothing that follows in it happens. */
export class Crash extends Error {}

export class MemorySource implements EntrySource {
  readonly entries: Entry[] = [];
  fault: AppendFault = "none";
  /** Whether the oldest entry is missing from what `after` returns. */
  hasGap = false;
  /** Position of the entry up to which all were removed; 0: none. */
  pruned = 0;
  newestWhole: Entry | null = null;
  /** Who has the lease. */
  term: Term | null = null;
  /** The turns that writers have asked for. */
  readonly turns: string[] = [];
  readonly #late: Entry[] = [];

  async append(entry: Entry, term: Term | null = null): Promise<boolean> {
    const { fault } = this;
    this.fault = "none";
    await Promise.resolve();
    if (term !== null && !Bun.deepEquals(term, this.term)) return false;
    if (fault === "unreachable") throw new SourceUnreachable();
    if (fault === "request") throw new AppendInDoubt();
    if (fault === "late") {
      this.#late.push(entry);
      throw new AppendInDoubt();
    }
    const isAdded = this.#add(entry);
    for (const late of this.#late.splice(0)) this.#add(late);
    if (fault === "answer") throw new AppendInDoubt();
    if (fault === "crash") throw new Crash();
    return isAdded;
  }

  reserve(node: string, ms: number): Promise<boolean> {
    this.turns.push(`${node} ${ms > 0 ? "begins" : "ends"}`);
    return Promise.resolve(false);
  }

  #add(entry: Entry): boolean {
    const isNext = entry.position === this.entries.length + 1;
    if (isNext) this.entries.push(entry);
    return isNext;
  }

  async after(position: number): Promise<LogPage> {
    await Promise.resolve();
    const kept = this.entries.filter((entry) => entry.position > this.pruned);
    const known = [...kept, this.newestWhole].find((entry) => entry?.position === position);
    return {
      head: this.entries.length,
      knownId: known?.id ?? null,
      entries: kept.filter((entry) => entry.position > position + (this.hasGap ? 1 : 0)),
    };
  }

  async idAt(position: number): Promise<string | null> {
    await Promise.resolve();
    return this.entries[position - 1]?.id ?? null;
  }

  async whole(): Promise<Entry | null> {
    await Promise.resolve();
    return this.newestWhole;
  }
}
