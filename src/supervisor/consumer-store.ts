// Keeps consumers and credentials in memory that all workers read, one version after the other; knows no thread.
import type { RecordKey, RecordTable } from "../shared-memory/record-reader.ts";
import { RecordWriter } from "../shared-memory/record-writer.ts";
import { consumerChange, type ConsumerChange } from "../snapshot/consumer-plans.ts";
import {
  encodeConsumer,
  encodeCredential,
  idOf,
  keyOf,
  keysOfConsumer,
  keysOfCredential,
} from "../snapshot/consumer-records.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";

/** So many additions at once leave tens of megabytes behind. */
const MANY = 20_000;

/** A written version is either kept or undone before the next one is written. */
export class ConsumerStore {
  readonly #writer = new RecordWriter();
  #isWritten = false;

  /** The version that was kept last. */
  get table(): RecordTable {
    return this.#writer.table;
  }

  /** Writes the consumers of `next` beside those of `previous`, the version that was kept; null when they are the same. */
  write(previous: Snapshot | null, next: Snapshot): RecordTable | null {
    if (previous?.consumers === next.consumers) return null;
    return this.change(consumerChange(previous, next));
  }

  /** Writes a change of what was kept; null when there is none. */
  change({ consumers, credentials }: ConsumerChange): RecordTable | null {
    this.undo();
    const additions = consumers.size + credentials.size;
    if (additions + consumers.removals.length + credentials.removals.length === 0) return null;
    const writer = this.#writer;
    writer.begin(additions);
    this.#isWritten = true;
    for (const id of consumers.removals) this.#retire(keyOf.consumer(id), id);
    for (const id of credentials.removals) this.#retire(keyOf.credential(id), id);
    for (const plan of consumers.upserts) {
      this.#retire(keyOf.consumer(plan.id), plan.id);
      writer.add(keysOfConsumer(plan), encodeConsumer(plan));
    }
    for (const plan of credentials.upserts) {
      this.#retire(keyOf.credential(plan.id), plan.id);
      writer.add(keysOfCredential(plan), encodeCredential(plan));
    }
    // What was made on the way would stay in memory until as much again is made, which here may take days.
    if (additions >= MANY) Bun.gc(true);
    return writer.next;
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

  #retire(key: RecordKey, id: string): void {
    const writer = this.#writer;
    const { reader, table } = writer;
    if (table.version === 0) return;
    const old = reader.find(key, table.version, (record) => idOf(reader.text(record)) === id);
    if (old !== 0) writer.retire(old);
  }
}
