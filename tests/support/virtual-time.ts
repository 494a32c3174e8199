// A clock that jumps to the next timer: hours of a simulation pass in seconds, and the same seed gives the same run. Knows no model.

interface Due {
  at: number;
  /** Timers of the same time fire in the order of their creation. */
  order: number;
  run: () => void;
  isOff: boolean;
}

/** Some fixed day. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

const realImmediate = setImmediate;

export class VirtualTime {
  #now = 0;
  #orders = 0;
  /** A binary heap. */
  readonly #due: Due[] = [];

  /** Milliseconds since the start. */
  get now(): number {
    return this.#now;
  }

  /** Timers and clocks of this process are those of this object until the returned function is called. */
  install(): () => void {
    const global = globalThis as unknown as Record<string, unknown>;
    const { setTimeout: timeout, clearTimeout: clear, setInterval: interval } = globalThis;
    const { clearInterval } = globalThis;
    const { now: monotonic } = performance;
    const { now: wall } = Date;
    const { sleep } = Bun;
    global["setTimeout"] = (run: () => void, ms = 0) => this.#add(ms, run);
    global["clearTimeout"] = global["clearInterval"] = (due?: Due) => {
      if (due !== undefined) due.isOff = true;
    };
    global["setInterval"] = (run: () => void, ms: number) => this.#repeat(ms, run);
    performance.now = () => this.#now;
    Date.now = () => EPOCH_MS + Math.floor(this.#now);
    Bun.sleep = (ms) => this.sleep(Number(ms));
    return () => {
      Object.assign(global, { setTimeout: timeout, clearTimeout: clear });
      Object.assign(global, { setInterval: interval, clearInterval });
      performance.now = monotonic;
      Date.now = wall;
      Bun.sleep = sleep;
    };
  }

  sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#add(ms, resolve);
    return promise;
  }

  /** Goes on from timer to timer until `work` ends; throws when no timer is left before that. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    let isOver = false;
    const result = work().finally(() => {
      isOver = true;
    });
    result.catch(() => undefined);
    for (;;) {
      // All that follows from the last timer, also where it yields to the event loop once.
      for (let turn = 0; turn < 2; turn++)
        await new Promise<void>((resolve) => realImmediate(resolve));
      if (isOver) return await result;
      const next = this.#take();
      if (next === undefined) throw new Error("all wait, and no timer is left");
      if (next.isOff) continue;
      this.#now = next.at;
      next.run();
    }
  }

  #repeat(ms: number, run: () => void): Due {
    const due = this.#add(ms, () => {
      run();
      if (due.isOff) return;
      due.at = this.#now + ms;
      due.order = this.#orders++;
      this.#push(due);
    });
    return due;
  }

  #add(ms: number, run: () => void): Due {
    const at = this.#now + Math.max(ms, 0);
    const due = { at, order: this.#orders++, run, isOff: false };
    this.#push(Object.assign(due, { ref: () => due, unref: () => due }));
    return due;
  }

  #push(due: Due): void {
    const heap = this.#due;
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Due;
      if (!isBefore(due, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = due;
  }

  #take(): Due | undefined {
    const heap = this.#due;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const [one, other] = [heap[left], heap[left + 1]];
      if (one === undefined) break;
      const isRight = other !== undefined && isBefore(other, one);
      const child = isRight ? other : one;
      if (!isBefore(child, last)) break;
      heap[index] = child;
      index = isRight ? left + 1 : left;
    }
    heap[index] = last;
    return first;
  }
}

const isBefore = (one: Due, other: Due) =>
  one.at < other.at || (one.at === other.at && one.order < other.order);
