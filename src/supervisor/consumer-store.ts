// Writes consumers and credentials to memory that all workers read, one version after the other; knows no thread.
import type { RecordKey, RecordTable } from "../shared-memory/record-reader.ts";
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
import { RecordStore } from "./record-store.ts";

/** So many additions at once leave tens of megabytes behind. */
const MANY = 20_000;

export class ConsumerStore {
  readonly #records = new RecordStore();

  /** The committed version. */
  get table(): RecordTable {
    return this.#records.table;
  }

  /** Writes the consumers of `next` beside those of `previous`, the committed version; null when they are the same. */
  write(previous: Snapshot | null, next: Snapshot): RecordTable | null {
    if (previous?.consumers === next.consumers) return null;
    return this.change(consumerChange(previous, next));
  }

  /** Writes a change of the committed version; null when it is empty. */
  change({ consumers, credentials }: ConsumerChange): RecordTable | null {
    this.rollback();
    const additions = consumers.size + credentials.size;
    if (additions + consumers.removals.length + credentials.removals.length === 0) return null;
    const records = this.#records;
    records.begin({ additions });
    for (const id of consumers.removals) this.#retire(keyOf.consumer(id), id);
    for (const id of credentials.removals) this.#retire(keyOf.credential(id), id);
    for (const plan of consumers.upserts) {
      this.#retire(keyOf.consumer(plan.id), plan.id);
      records.add(keysOfConsumer(plan), encodeConsumer(plan));
    }
    for (const plan of credentials.upserts) {
      this.#retire(keyOf.credential(plan.id), plan.id);
      records.add(keysOfCredential(plan), encodeCredential(plan));
    }
    // Bun would collect the temporary objects only after as many again are allocated, which here may take days.
    if (additions >= MANY) Bun.gc(true);
    return records.next;
  }

  /** The next change starts from the written version. */
  commit(): void {
    this.#records.commit();
  }

  /** Discards the written version. */
  rollback(): void {
    this.#records.rollback();
  }

  #retire(key: RecordKey, id: string): void {
    this.#records.retire(key, (text) => idOf(text) === id);
  }
}
