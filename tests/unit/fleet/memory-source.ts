// A log in memory, which loses requests and answers where a test wants it to.
import type { Entry } from "../../../src/fleet/entry.ts";
import { AppendInDoubt, type EntrySource, SourceUnreachable } from "../../../src/fleet/source.ts";

/** What happens to the next append: `request` and `answer` are lost on their way, `crash` ends the writer after it was stored. */
export type AppendFault = "none" | "request" | "unreachable" | "answer" | "crash";

/** The writer ends: nothing that follows in it happens. */
export class Crash extends Error {}

export class MemorySource implements EntrySource {
  readonly entries: Entry[] = [];
  fault: AppendFault = "none";
  /** Whether the oldest entry is missing from what `after` returns. */
  hasGap = false;

  async append(entry: Entry): Promise<boolean> {
    const { fault } = this;
    this.fault = "none";
    await Promise.resolve();
    if (fault === "unreachable") throw new SourceUnreachable();
    if (fault === "request") throw new AppendInDoubt();
    const isNext = entry.position === this.entries.length + 1;
    if (isNext) this.entries.push(entry);
    if (fault === "answer") throw new AppendInDoubt();
    if (fault === "crash") throw new Crash();
    return isNext;
  }

  async after(position: number): Promise<readonly Entry[]> {
    await Promise.resolve();
    return this.entries.slice(position + (this.hasGap ? 1 : 0));
  }

  async at(position: number): Promise<Entry | null> {
    await Promise.resolve();
    return this.entries[position - 1] ?? null;
  }
}
