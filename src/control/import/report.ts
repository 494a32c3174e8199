// What became of each part of another program's configuration, in words for a person; knows no program.

const reportLevels = ["carried", "changed", "left_out"] as const;
export type ReportLevel = (typeof reportLevels)[number];

/** One sentence: `what` is a thing of the source, `why` says what became of it. */
export interface ReportEntry {
  readonly level: ReportLevel;
  readonly what: string;
  readonly why: string;
}

/** Something that tells at the end which of its parts nobody has looked at. */
export interface Unread {
  unread(): readonly string[];
}

const order: Readonly<Record<ReportLevel, number>> = { left_out: 0, changed: 1, carried: 2 };

/** Collects entries; the same one is kept once. */
export class Report {
  readonly #entries = new Map<string, ReportEntry>();
  readonly #watched: Unread[] = [];

  /** What stands in the source and is there now too, as `why` says. */
  carried(what: string, why: string): void {
    this.#add({ level: "carried", what, why });
  }

  /** What is there now, but does not behave the same. */
  changed(what: string, why: string): void {
    this.#add({ level: "changed", what, why });
  }

  leftOut(what: string, why: string): void {
    this.#add({ level: "left_out", what, why });
  }

  /** Takes back what was said about something that had to go after all. */
  retract(level: ReportLevel, what: string): void {
    for (const [key, entry] of this.#entries)
      if (entry.level === level && entry.what === what) this.#entries.delete(key);
  }

  watch(part: Unread): void {
    this.#watched.push(part);
  }

  /** All entries, the gravest first; what nobody has looked at is left out and said to be. */
  finish(): readonly ReportEntry[] {
    for (const part of this.#watched.splice(0))
      for (const what of part.unread()) this.leftOut(what, "this import does not know it");
    return [...this.#entries.values()].toSorted((a, b) => order[a.level] - order[b.level]);
  }

  #add(entry: ReportEntry): void {
    this.#entries.set(JSON.stringify(entry), entry);
  }
}
