// Keeps records in memory that all workers read, one version after the other; knows no record and no thread.
import type { RecordKey, RecordTable } from "../shared-memory/record-reader.ts";
import { RecordWriter } from "../shared-memory/record-writer.ts";

/** How much is about to be written. */
export interface Writing {
  readonly additions: number;
  /** Bytes of one record, about. */
  readonly bytes?: number;
}

/** A written version is either kept or undone before the next one is written. */
export class RecordStore {
  readonly #writer = new RecordWriter();
  #isWritten = false;

  /** The version that was kept last. */
  get table(): RecordTable {
    return this.#writer.table;
  }

  /** The version in the making. */
  get next(): RecordTable {
    return this.#writer.next;
  }

  /** Begins a version beside the one that was kept; what was written and not kept is undone. */
  begin({ additions, bytes }: Writing): void {
    this.undo();
    this.#writer.begin(additions, bytes);
    this.#isWritten = true;
  }

  /** Adds a record and returns where it is. */
  add(keys: readonly RecordKey[], text: string): number {
    return this.#writer.add(keys, text);
  }

  /** Takes out the record under the key of which `matches` says that it is the one, if it is there. */
  retire(key: RecordKey, matches: (text: string) => boolean): void {
    const writer = this.#writer;
    const { reader, table } = writer;
    if (table.version === 0) return;
    const old = reader.find(key, table.version, (record) => matches(reader.text(record)));
    if (old !== 0) writer.retire(old);
  }

  /** Where all records of the version are that was kept last, in the order in which they were added. */
  positions(): number[] {
    return [...this.#writer.positions()];
  }

  /** What was written is what the next change starts from. */
  keep(): void {
    if (!this.#isWritten) return;
    this.#isWritten = false;
    this.#writer.keep();
  }

  /** Takes back what was written. */
  undo(): void {
    if (!this.#isWritten) return;
    this.#isWritten = false;
    this.#writer.undo();
  }
}
