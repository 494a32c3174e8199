// Logs refused connections at most once a second per listener and reason, so that a flood does not fill the log; knows no socket.

const INTERVAL_MS = 1000;
/** Reasons are few; past this the map starts over. */
const MAX_KEYS = 1000;

export type RefusalWriter = (fields: {
  readonly listener: string;
  readonly reason: string;
  readonly client: string;
  /** Refusals for this reason since the previous line, this one included. */
  readonly count: number;
}) => void;

/** As a function of `refused`. */
export function logRefusals(write: RefusalWriter): RefusalLog["refused"] {
  const log = new RefusalLog(write);
  return (listener, reason, client) => log.refused(listener, reason, client);
}

export class RefusalLog {
  readonly #write: RefusalWriter;
  readonly #now: () => number;
  readonly #seen = new Map<string, { at: number; count: number }>();

  constructor(write: RefusalWriter, now: () => number = () => performance.now()) {
    this.#write = write;
    this.#now = now;
  }

  refused(listener: string, reason: string, client: string): void {
    const key = `${listener} ${reason}`;
    const now = this.#now();
    const known = this.#seen.get(key);
    if (known !== undefined && now - known.at < INTERVAL_MS) {
      known.count++;
      return;
    }
    if (this.#seen.size >= MAX_KEYS) this.#seen.clear();
    this.#seen.set(key, { at: now, count: 0 });
    this.#write({ listener, reason, client, count: (known?.count ?? 0) + 1 });
  }
}
