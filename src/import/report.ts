// Reports the result for each part of another program's configuration, for people; knows no program.

const reportLevels = ["imported", "changed", "omitted"] as const;
export type ReportLevel = (typeof reportLevels)[number];

/** One sentence: `what` is an object or field of the source, `why` is its result. */
export interface ReportEntry {
  readonly level: ReportLevel;
  readonly what: string;
  readonly why: string;
}

/** Entries of one level with the same cause. */
export interface ReportGroup {
  readonly level: ReportLevel;
  readonly why: string;
  readonly what: readonly string[];
}

/** Lists the parts that no converter has read. */
export interface Unread {
  unread(): readonly string[];
}

const order: Readonly<Record<ReportLevel, number>> = { omitted: 0, changed: 1, imported: 2 };

/** Collects entries without duplicates. */
export class Report {
  readonly #entries = new Map<string, ReportEntry>();
  readonly #watched: Unread[] = [];

  /** Imported with the same behavior. */
  imported(what: string, why: string): void {
    this.#add({ level: "imported", what, why });
  }

  /** Imported with different behavior. */
  changed(what: string, why: string): void {
    this.#add({ level: "changed", what, why });
  }

  omitted(what: string, why: string): void {
    this.#add({ level: "omitted", what, why });
  }

  /** Removes entries for an object that is dropped later. */
  retract(level: ReportLevel, what: string): void {
    for (const [key, entry] of this.#entries)
      if (entry.level === level && entry.what === what) this.#entries.delete(key);
  }

  watch(part: Unread): void {
    this.#watched.push(part);
  }

  /** All entries, what was not imported first; adds an entry for each unread part. */
  finish(): readonly ReportEntry[] {
    for (const part of this.#watched.splice(0))
      for (const what of part.unread()) this.omitted(what, "the import does not support it");
    return [...this.#entries.values()].toSorted((a, b) => order[a.level] - order[b.level]);
  }

  #add(entry: ReportEntry): void {
    this.#entries.set(JSON.stringify(entry), entry);
  }
}

/** The report by cause, for people: most severe level first, causes in the order of their first object. */
export function groupReport(entries: readonly ReportEntry[]): readonly ReportGroup[] {
  const groups = new Map<string, { level: ReportLevel; why: string; what: string[] }>();
  for (const { level, what, why } of entries) {
    const key = `${level} ${why}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { level, why, what: [what] });
    else if (!group.what.includes(what)) group.what.push(what);
  }
  return [...groups.values()].toSorted((a, b) => order[a.level] - order[b.level]);
}
