// Cuts long work into slices, so that the event loop runs between them; knows nothing of the work.

export interface PaceOptions {
  /** Objects in one slice, at most; default 100. */
  readonly objects?: number;
  /** Milliseconds after which a slice ends with the current object; default 5. */
  readonly ms?: number;
  /** Called after each pause with the number of objects in the slice before it. */
  readonly rested?: (objects: number) => void;
}

/** Work that yields after each object: `Pace.run` runs it in slices, `finish` at once. */
export type Steps<T> = Generator<undefined, T>;

/** Runs the work without a rest. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** One turn of the event loop for sockets and timers; a resolved promise would not yield to them. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** `for (...) { ...; if (pace.isDue()) await pace.rest(); }`: work that fits into one slice never waits. */
export class Pace {
  readonly #objects: number;
  readonly #ms: number;
  readonly #rested: (objects: number) => void;
  #done = 0;
  #began = performance.now();

  constructor({ objects = 100, ms = 5, rested = () => {} }: PaceOptions = {}) {
    this.#objects = objects;
    this.#ms = ms;
    this.#rested = rested;
  }

  /** Starts a new slice. */
  begin(): void {
    this.#done = 0;
    this.#began = performance.now();
  }

  /** Counts one object; true at the end of the slice. */
  isDue(): boolean {
    return ++this.#done >= this.#objects || performance.now() - this.#began >= this.#ms;
  }

  /** Runs the work in slices. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
      if (this.isDue()) await this.rest();
    }
  }

  /** Ends the slice and yields to the event loop. */
  async rest(): Promise<void> {
    const done = this.#done;
    await nextTurn();
    this.begin();
    this.#rested(done);
  }
}
