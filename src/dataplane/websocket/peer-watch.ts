// What time tells about one peer of a WebSocket: silent for long, gone, or taking nothing; knows no socket and no frame.

/** How long a WebSocket may do without what keeps it open, in milliseconds. */
export interface SessionTimes {
  /** A peer that is silent for as long is sent a ping, and has as long again for a sign of life. */
  readonly idle: number;
  /** While a session ends, both sides must get on at least this often. */
  readonly closing: number;
}

/** Numbers that are compared when the clock comes by; a message costs no more than setting a flag. */
export class PeerWatch {
  #hasSpoken = false;
  #silentSince: number;
  #isAsked = false;
  #waiting = 0;
  #movedAt: number;

  constructor(now: number) {
    this.#silentSince = now;
    this.#movedAt = now;
  }

  /** Something came from the peer. */
  spoke(): void {
    this.#hasSpoken = true;
  }

  /** For how long nothing of the bytes that wait for the peer has gone out; 0 when none wait. */
  stuckFor(now: number, waiting: number): number {
    if (waiting !== this.#waiting || waiting === 0) this.#movedAt = now;
    this.#waiting = waiting;
    return now - this.#movedAt;
  }

  /** What its silence asks for. `isExcused`: it could not be heard, or would not get a ping, whatever it does. */
  silence(now: number, idle: number, isExcused: boolean): "none" | "ask" | "gone" {
    if (this.#hasSpoken || isExcused) {
      this.#hasSpoken = false;
      this.#isAsked = false;
      this.#silentSince = now;
      return "none";
    }
    if (now - this.#silentSince < idle) return "none";
    if (this.#isAsked) return "gone";
    this.#isAsked = true;
    this.#silentSince = now;
    return "ask";
  }
}
