// What happened in a run of chaos, in order, and the promises that it broke; knows no fleet.

export interface Interval {
  readonly begin: number;
  end: number;
}

export class History {
  readonly #begun = performance.now();
  readonly #print: (line: string) => void;
  readonly #broken: string[] = [];
  /** By node: when it was not expected to respond. */
  readonly #excused = new Map<number, Interval[]>();
  readonly #rewound: Interval[] = [];
  /** When the last change began that all nodes served with its reply. */
  wholeAt = Number.NEGATIVE_INFINITY;
  readonly counts = {
    acknowledged: 0,
    refused: 0,
    /** They may have been made. */
    unanswered: 0,
    /** Replies that counted a node that did not serve the change. */
    lies: 0,
    /** Replies of which each counted node was asked. */
    verified: 0,
    lost: 0,
    requests: 0,
    failed_requests: 0,
    /** That failed at a node that was down itself. */
    excused_requests: 0,
    epochs: 0,
    faults: 0,
    longest_healing_ms: 0,
  };

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  get broken(): readonly string[] {
    return this.#broken;
  }

  note(text: string): void {
    const at = ((performance.now() - this.#begun) / 1000).toFixed(2).padStart(7);
    this.#print(`${at} s  ${text}`);
  }

  breaks(promise: string): void {
    this.#broken.push(promise);
    this.note(`BROKEN: ${promise}`);
  }

  /** From now on nothing is expected of a node, until the function that it returns is called. */
  excuse(node: number): () => void {
    const interval = { begin: performance.now(), end: Number.POSITIVE_INFINITY };
    this.#excused.set(node, [...(this.#excused.get(node) ?? []), interval]);
    return () => {
      interval.end = performance.now();
    };
  }

  /** From now on the database is of the past, until the function that it returns is called: what it had later may be lost. */
  rewind(): () => void {
    const interval = { begin: performance.now(), end: Number.POSITIVE_INFINITY };
    this.#rewound.push(interval);
    return () => {
      interval.end = performance.now();
    };
  }

  isRewound(since: number): boolean {
    return this.#rewound.some(({ end }) => end >= since);
  }

  isExcused(node: number, since: number): boolean {
    return (this.#excused.get(node) ?? []).some(({ end }) => end >= since);
  }
}
