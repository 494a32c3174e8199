// Writes records to memory that all workers read, one version after the other; knows no record and no thread.
import type { RecordKey, RecordTable } from "../shared-memory/record-reader.ts";
import { RecordWriter } from "../shared-memory/record-writer.ts";

/** How much is about to be written. */
export interface Writing {
  readonly additions: number;
  /** Approximate bytes of one record. */
  readonly bytes?: number;
}

/** A written version is committed or rolled back before the next one is written. */
export class RecordStore {
  readonly #writer = new RecordWriter();
  #isWritten = false;

  /** The committed version. */
  get table(): RecordTable {
    return this.#writer.table;
  }

  /** The version being written. */
  get next(): RecordTable {
    return this.#writer.next;
  }

  /** Begins a version beside the committed one; rolls back a version that was not committed. */
  begin({ additions, bytes }: Writing): void {
    this.rollback();
    this.#writer.begin(additions, bytes);
    this.#isWritten = true;
  }

  /** Adds a record and returns its position. */
  add(keys: readonly RecordKey[], text: string): number {
    return this.#writer.add(keys, text);
  }

  /** Removes the record under the key that `matches` accepts, if there is one. */
  retire(key: RecordKey, matches: (text: string) => boolean): void {
    const writer = this.#writer;
    const { reader, table } = writer;
    if (table.version === 0) return;
    const old = reader.find(key, table.version, (record) => matches(reader.text(record)));
    if (old !== 0) writer.retire(old);
  }

  /** Positions of all records of the committed version, in the order in which they were added. */
  positions(): number[] {
    return [...this.#writer.positions()];
  }

  /** The next change starts from the written version. */
  commit(): void {
    if (!this.#isWritten) return;
    this.#isWritten = false;
    this.#writer.commit();
  }

  /** Discards the written version. */
  rollback(): void {
    if (!this.#isWritten) return;
    this.#isWritten = false;
    this.#writer.rollback();
  }
}
