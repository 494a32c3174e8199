// Which stream's body is sent next (RFC 9218): by urgency, then one after the other, or in turns; knows no frame.

export interface Priority {
  /** 0 is the most urgent, 7 the least. */
  readonly urgency: number;
  /** Whether its parts are of use on their own, so that it shares the connection. */
  readonly isIncremental: boolean;
}

const URGENCIES = 8;
const DEFAULT_URGENCY = 3;

/** Of a client that says nothing: its requests share the connection, because one may be long. */
export const NO_PRIORITY: Priority = { urgency: DEFAULT_URGENCY, isIncremental: true };

const ITEM = /^(u|i)(?:=(\?[01]|\d+))?(?:;.*)?$/;

/** The value of Priority, a dictionary of structured fields (RFC 9218 section 4); what is not valid counts as not there. */
export function readPriority(value: string): Priority {
  let urgency = DEFAULT_URGENCY;
  let isIncremental = false;
  for (const item of value.split(",")) {
    const [, key, given] = ITEM.exec(item.trim()) ?? [];
    if (key === "u" && given !== undefined && /^[0-7]$/.test(given)) urgency = Number(given);
    if (key === "i") isIncremental = given === undefined || given === "?1";
  }
  return { urgency, isIncremental };
}

/** A stream with bytes to send. Its members belong to `ReadyStreams` while it is in there. */
export interface ReadyStream {
  readonly id: number;
  priority: Priority;
  readyList: ReadyList | null;
  nextReady: ReadyStream | null;
}

/** Streams of one urgency. */
export class ReadyList {
  first: ReadyStream | null = null;

  append(stream: ReadyStream): void {
    this.#insert(stream, () => false);
  }

  /** In the order of their ids. */
  insert(stream: ReadyStream): void {
    this.#insert(stream, ({ id }) => id > stream.id);
  }

  #insert(stream: ReadyStream, isBehind: (other: ReadyStream) => boolean): void {
    let before: ReadyStream | null = null;
    let at = this.first;
    while (at !== null && !isBehind(at)) {
      before = at;
      at = at.nextReady;
    }
    stream.nextReady = at;
    if (before === null) this.first = stream;
    else before.nextReady = stream;
  }

  remove(stream: ReadyStream): void {
    let before: ReadyStream | null = null;
    for (let at = this.first; at !== null; at = at.nextReady) {
      if (at === stream) {
        if (before === null) this.first = at.nextReady;
        else before.nextReady = at.nextReady;
        break;
      }
      before = at;
    }
    stream.nextReady = null;
  }
}

interface Level {
  /** Those that are sent one after the other. */
  readonly sequential: ReadyList;
  /** Those that take turns. */
  readonly shared: ReadyList;
  /** Where both have streams, they alternate: neither waits for the end of the other. */
  isTurnOfShared: boolean;
}

/** The streams of a connection that have bytes to send, and whose windows are open. */
export class ReadyStreams {
  readonly #levels: Level[] = [];

  add(stream: ReadyStream): void {
    if (stream.readyList !== null) return;
    const level = this.#level(stream.priority.urgency);
    const list = stream.priority.isIncremental ? level.shared : level.sequential;
    stream.readyList = list;
    if (stream.priority.isIncremental) list.append(stream);
    else list.insert(stream);
  }

  #level(urgency: number): Level {
    const known = this.#levels[urgency];
    if (known !== undefined) return known;
    while (this.#levels.length < URGENCIES)
      this.#levels.push({
        sequential: new ReadyList(),
        shared: new ReadyList(),
        isTurnOfShared: false,
      });
    return this.#level(urgency);
  }

  remove(stream: ReadyStream): void {
    stream.readyList?.remove(stream);
    stream.readyList = null;
  }

  /** Moves a stream that is in here as well. */
  change(stream: ReadyStream, priority: Priority): void {
    const isReady = stream.readyList !== null;
    this.remove(stream);
    stream.priority = priority;
    if (isReady) this.add(stream);
  }

  /** The stream that may send a frame; null: none. One that takes turns goes behind the others. */
  next(): ReadyStream | null {
    for (const level of this.#levels) {
      const { sequential, shared } = level;
      const isShared = sequential.first === null || (level.isTurnOfShared && shared.first !== null);
      level.isTurnOfShared = !isShared;
      const { first } = isShared ? shared : sequential;
      if (first === null) continue;
      if (isShared && first.nextReady !== null) {
        shared.remove(first);
        shared.append(first);
      }
      return first;
    }
    return null;
  }
}
