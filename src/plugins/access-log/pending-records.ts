// The pending records of a queue: as entries, or as bytes of lines; knows no sink.
import type { Format } from "./format.ts";
import { LineBuffer } from "./line-buffer.ts";
import type { Entry, PendingRecords } from "./queue.ts";
import type { Subject } from "./subject.ts";

/** Separate records, for sinks that send messages. */
export class PendingEntries implements PendingRecords<readonly Entry[]> {
  #entries: Entry[] = [];
  #size = 0;

  get records(): number {
    return this.#entries.length;
  }

  get size(): number {
    return this.#size;
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
    this.#size += entry.line.length;
  }

  take(most: number): readonly Entry[] {
    const batch = this.#entries.slice(0, most);
    this.#entries = this.#entries.slice(most);
    for (const { line } of batch) this.#size -= line.length;
    return batch;
  }
}

const NEW_LINE = 10;

/** Lines as bytes, for sinks that send a byte stream. */
export class PendingLines implements PendingRecords<Uint8Array> {
  #records = 0;
  #lines = new LineBuffer();
  /** The batch being sent. */
  #outside = new LineBuffer();

  get records(): number {
    return this.#records;
  }

  get size(): number {
    return this.#lines.length;
  }

  /** When it throws, nothing of the line remains. */
  add(subject: Subject, format: Format): void {
    const lines = this.#lines;
    const begin = lines.length;
    try {
      format(subject, lines);
    } catch (error) {
      lines.cut(begin);
      throw error;
    }
    lines.byte(NEW_LINE);
    this.#records++;
  }

  take(): Uint8Array {
    const free = this.#outside;
    free.clear();
    [this.#lines, this.#outside] = [free, this.#lines];
    this.#records = 0;
    return this.#outside.view();
  }
}
