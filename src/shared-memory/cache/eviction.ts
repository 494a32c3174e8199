// Order of eviction: SIEVE (Zhang et al., NSDI 2024) over entries in queues; knows no contents and frees nothing.
//
// SIEVE, not S3-FIFO: a hit sets one word and takes no lock, there is one queue and no list of former keys to share between
// threads, and a flood of URLs requested once displaces only itself.
import { counters, fields, QUEUE_WORDS, queueWords, type Views } from "./memory.ts";

const { newest, oldest, hand } = queueWords;

/** Entries that the hand passes for one eviction, so that no eviction takes long; then it evicts a visited one. */
const MAX_PASSED = 512;
/** The same when the age of the next victim is estimated. */
const MAX_PEEKED = 4;

/** All of these need the lock. */
export class Queues {
  readonly #views: Views;

  constructor(views: Views) {
    this.#views = views;
  }

  /** Clock of ages: stores so far. */
  get now(): number {
    return (this.#views.counters[counters.stored] ?? 0) | 0;
  }

  add(queue: number, entry: number): void {
    const { queues } = this.#views;
    const at = queue * QUEUE_WORDS;
    const before = queues[at + newest] ?? 0;
    this.#views.set(entry, fields.older, before);
    this.#views.set(entry, fields.newer, 0);
    this.#views.set(entry, fields.time, this.now);
    if (before === 0) queues[at + oldest] = entry;
    else this.#views.set(before, fields.newer, entry);
    queues[at + newest] = entry;
  }

  remove(queue: number, entry: number): void {
    const { queues } = this.#views;
    const at = queue * QUEUE_WORDS;
    const older = this.#views.get(entry, fields.older);
    const newer = this.#views.get(entry, fields.newer);
    if (queues[at + hand] === entry) queues[at + hand] = newer;
    if (older === 0) queues[at + oldest] = newer;
    else this.#views.set(older, fields.newer, newer);
    if (newer === 0) queues[at + newest] = older;
    else this.#views.set(newer, fields.older, older);
  }

  /** The entry to evict; 0: the queue is empty. */
  next(queue: number): number {
    const entry = this.#pass(queue, MAX_PASSED);
    this.#views.queues[queue * QUEUE_WORDS + hand] =
      entry === 0 ? 0 : this.#views.get(entry, fields.newer);
    return entry;
  }

  /** Stores since the next victim was stored or visited; -1: the queue is empty. */
  age(queue: number): { readonly victim: number; readonly age: number } {
    const victim = this.#pass(queue, MAX_PEEKED);
    this.#views.queues[queue * QUEUE_WORDS + hand] = victim;
    if (victim === 0) return { victim, age: -1 };
    const isVisited = this.#views.get(victim, fields.visited) !== 0;
    return { victim, age: isVisited ? 0 : (this.now - this.#views.get(victim, fields.time)) >>> 0 };
  }

  /** Moves the hand past visited entries. */
  #pass(queue: number, most: number): number {
    const { queues } = this.#views;
    const at = queue * QUEUE_WORDS;
    let entry = queues[at + hand] || (queues[at + oldest] ?? 0);
    for (let step = 0; step < most && entry !== 0; step++) {
      if (this.#views.get(entry, fields.visited) === 0) return entry;
      this.#views.set(entry, fields.visited, 0);
      this.#views.set(entry, fields.time, this.now);
      entry = this.#views.get(entry, fields.newer) || (queues[at + oldest] ?? 0);
    }
    return entry;
  }
}
