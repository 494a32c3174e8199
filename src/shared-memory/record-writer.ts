// Writes versions of records into memory that other threads read concurrently; knows nothing of what records mean.
import {
  hashOf,
  header,
  link,
  record,
  type RecordKey,
  RecordReader,
  type RecordTable,
  slotOf,
} from "./record-reader.ts";

const MIN_HEAP_WORDS = 4_096;
const MIN_SLOTS = 1_024;
/** Reserved for a record of unknown length; unused pages take up no memory. */
const BYTES_OF_A_RECORD = 192;
const LINKS_OF_A_RECORD = 2;

/** Factor of a new buffer. */
const GROWTH = 1.25;

/** UTF-8 bytes for one UTF-16 code unit. */
const MAX_BYTES_OF_UNIT = 3;

interface Room {
  readonly words: number;
  readonly links: number;
}

/** A buffer, its views and the offset of its heap. */
interface Memory {
  readonly buffer: SharedArrayBuffer;
  readonly words: Int32Array;
  readonly bytes: Buffer;
  readonly slots: number;
  readonly heap: number;
  readonly reader: RecordReader;
}

/**
 * The one writer of a table. A change is `begin`, `retire` and `add`, then `commit` or `rollback`; readers of earlier versions
 * do not see it. Memory of retired records is freed once they are more than the live ones: the live ones move to another buffer
 * then, as they do when the buffer is full.
 */
export class RecordWriter {
  #memory = createMemory({ words: MIN_HEAP_WORDS, links: 0 });
  #epoch = 1;
  /** The last version that was begun, and the committed one. */
  #version = 0;
  #committed = 0;
  /** The buffer that readers of the committed version have. */
  #committedBuffer: SharedArrayBuffer | null = null;
  /** The first word of the heap stays free: position 0 means none. */
  #used = 1;
  #links = 0;
  #retiredWords = 0;
  #added: number[] = [];
  #retired: number[] = [];

  /** The committed version. */
  get table(): RecordTable {
    return { epoch: this.#epoch, version: this.#committed, buffer: this.#memory.buffer };
  }

  /** The version being written, for readers of the committed one. */
  get next(): RecordTable {
    const { buffer } = this.#memory;
    const isKnown = buffer === this.#committedBuffer;
    return { epoch: this.#epoch, version: this.#version, buffer: isKnown ? null : buffer };
  }

  get reader(): RecordReader {
    return this.#memory.reader;
  }

  /** Begins a version; rolls back one that was not committed. Takes the approximate number of additions and their size. */
  begin(additions: number, bytes = BYTES_OF_A_RECORD): void {
    this.rollback();
    if (this.#retiredWords > Math.max(this.#used / 2, MIN_HEAP_WORDS)) this.#compact();
    this.#ensure({
      words: Math.ceil((additions * bytes) / 4),
      links: additions * LINKS_OF_A_RECORD,
    });
    this.#version++;
  }

  /** Removes the record from the version being written on. */
  retire(found: number): void {
    Atomics.store(this.#memory.words, this.#memory.heap + found + record.until, this.#version);
    this.#retired.push(found);
  }

  /** Adds a record under these keys, from the version being written on. Returns its position. */
  add(keys: readonly RecordKey[], text: string): number {
    const header = record.length + keys.length * link.length;
    const most = header + Math.ceil((text.length * MAX_BYTES_OF_UNIT) / 4);
    this.#ensure({ words: most, links: keys.length });
    const { words, bytes, heap } = this.#memory;
    const found = this.#used;
    const start = heap + found;
    const length = bytes.write(text, (start + header) * 4, "utf8");
    words[start + record.from] = this.#version;
    words[start + record.until] = 0;
    words[start + record.bytes] = length;
    words[start + record.links] = keys.length;
    for (const [index, key] of keys.entries()) {
      const at = found + record.length + index * link.length;
      words[heap + at + link.hash] = hashOf(key);
      words[heap + at + link.record] = found;
      addLink(this.#memory, at);
    }
    this.#used += header + Math.ceil(length / 4);
    this.#links += keys.length;
    this.#added.push(found);
    return found;
  }

  /** Positions of the records of the committed version, in the order in which they were added. */
  *positions(): Generator<number> {
    for (const found of this.#records(this.#memory))
      if (this.reader.isVisible(found, this.#committed)) yield found;
  }

  /** The next change starts from the written version. */
  commit(): void {
    for (const found of this.#retired) this.#retiredWords += lengthOf(this.#memory, found);
    this.#committed = this.#version;
    this.#committedBuffer = this.#memory.buffer;
    this.#forget();
  }

  /** Reverts all since `begin`. */
  rollback(): void {
    const { words, heap } = this.#memory;
    for (const found of this.#retired) Atomics.store(words, heap + found + record.until, 0);
    for (const found of this.#added) {
      // Until its first version: it exists in none.
      Atomics.store(words, heap + found + record.until, words[heap + found + record.from] ?? 0);
      this.#retiredWords += lengthOf(this.#memory, found);
    }
    this.#forget();
  }

  #forget(): void {
    this.#added = [];
    this.#retired = [];
  }

  /** Makes room; positions in the heap do not change. */
  #ensure(room: Room): void {
    const memory = this.#memory;
    const needed = { words: this.#used + room.words, links: this.#links + room.links };
    const hasWords = memory.heap + needed.words <= memory.words.length;
    if (hasWords && needed.links * 2 <= memory.slots) return;
    const next = createMemory({ words: Math.ceil(needed.words * GROWTH), links: needed.links });
    next.words.set(memory.words.subarray(memory.heap, memory.heap + this.#used), next.heap);
    for (const found of this.#records(next)) addLinks(next, found);
    this.#memory = next;
  }

  /** Moves live records to a new buffer. Only between two changes: readers of older versions still have the old buffer. */
  #compact(): void {
    const before = this.#memory;
    const links = this.#links;
    const next = createMemory({ words: (this.#used - this.#retiredWords) * 2, links });
    let [used, linkCount] = [1, 0];
    for (const found of this.#records(before)) {
      const start = before.heap + found;
      if (before.words[start + record.until] !== 0) continue;
      const length = lengthOf(before, found);
      next.words.set(before.words.subarray(start, start + length), next.heap + used);
      const count = addLinks(next, used);
      used += length;
      linkCount += count;
    }
    this.#memory = next;
    this.#epoch++;
    this.#used = used;
    this.#links = linkCount;
    this.#retiredWords = 0;
  }

  *#records(memory: Memory): Generator<number> {
    let at = 1;
    while (at < this.#used) {
      yield at;
      at += lengthOf(memory, at);
    }
  }
}

function createMemory({ words: heapWords, links }: Room): Memory {
  let slots = MIN_SLOTS;
  while (slots < links * 2) slots *= 2;
  const heap = header.length + slots;
  const buffer = new SharedArrayBuffer((heap + Math.max(heapWords, MIN_HEAP_WORDS)) * 4);
  const words = new Int32Array(buffer);
  words[header.slots] = slots;
  return {
    buffer,
    words,
    bytes: Buffer.from(buffer),
    slots,
    heap,
    reader: new RecordReader(buffer),
  };
}

function lengthOf({ words, heap }: Memory, found: number): number {
  const start = heap + found;
  const links = words[start + record.links] ?? 0;
  return record.length + links * link.length + Math.ceil((words[start + record.bytes] ?? 0) / 4);
}

/** Inserts a link, whose hash is written, at the head of its chain. */
function addLink(memory: Memory, at: number): void {
  const { words, heap } = memory;
  const slot = slotOf(words, memory, words[heap + at + link.hash] ?? 0);
  words[heap + at + link.next] = words[slot] ?? 0;
  // A store with release semantics: readers of the link see the record.
  Atomics.store(words, slot, at);
}

/** Inserts the links of a copied record; returns their number. */
function addLinks(memory: Memory, found: number): number {
  const { words, heap } = memory;
  const links = words[heap + found + record.links] ?? 0;
  for (let index = 0; index < links; index++) {
    const at = found + record.length + index * link.length;
    words[heap + at + link.record] = found;
    addLink(memory, at);
  }
  return links;
}
