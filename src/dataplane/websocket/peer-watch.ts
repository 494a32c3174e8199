// Detects that one peer of a WebSocket is idle, dead or does not read; knows no socket and no frame.

/** Milliseconds. */
export interface SessionTimeouts {
  /** After this silence the gateway sends a ping; after as long again without a sign of life the peer is dead. */
  readonly idle: number;
  /** While a session closes, both sides must make progress at least this often. */
  readonly closing: number;
}

/** Compares numbers once per tick; a message only sets a flag. */
export class PeerWatch {
  #wasActive = false;
  #silentSince: number;
  #isPinged = false;
  #waiting = 0;
  #movedAt: number;

  constructor(now: number) {
    this.#silentSince = now;
    this.#movedAt = now;
  }

  /** The peer has sent something. */
  onActivity(): void {
    this.#wasActive = true;
  }

  /** Milliseconds in which none of the `waiting` bytes for the peer went out; 0 when none wait. */
  stalledFor(now: number, waiting: number): number {
    if (waiting !== this.#waiting || waiting === 0) this.#movedAt = now;
    this.#waiting = waiting;
    return now - this.#movedAt;
  }

  /** What to do about its silence. `isExcused`: the gateway does not read from the peer now, or a ping could not reach it. */
  silence(now: number, idle: number, isExcused: boolean): "none" | "ping" | "dead" {
    if (this.#wasActive || isExcused) {
      this.#wasActive = false;
      this.#isPinged = false;
      this.#silentSince = now;
      return "none";
    }
    if (now - this.#silentSince < idle) return "none";
    if (this.#isPinged) return "dead";
    this.#isPinged = true;
    this.#silentSince = now;
    return "ping";
  }
}
