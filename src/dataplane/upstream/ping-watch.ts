// Finds out by PING whether a silent target is still there, because no timeout of an idle stream would show it; knows no stream.

/** Silence with open streams before the gateway sends a PING, and time for the response. */
const PING_AFTER_MS = 30_000;
const PING_TIMEOUT_MS = 20_000;
/** gRPC servers end connections that send PING more often than every 5 minutes without data. */
const PING_PAUSE_MS = 310_000;

export const PING_PAYLOAD = Buffer.from("sluice: ");

export class PingWatch {
  #pingedAt = Number.NEGATIVE_INFINITY;
  #isPinging = false;

  /** Whether the target has not responded to its PING. */
  isLost(now: number): boolean {
    return this.#isPinging && now - this.#pingedAt >= PING_TIMEOUT_MS;
  }

  /** Whether a PING must be sent now. */
  isDue(now: number, heardAt: number): boolean {
    const isSilent = now - heardAt >= PING_AFTER_MS;
    if (this.#isPinging || !isSilent || now - this.#pingedAt < PING_PAUSE_MS) return false;
    this.#pingedAt = now;
    this.#isPinging = true;
    return true;
  }

  acknowledged(payload: Buffer): void {
    if (payload.equals(PING_PAYLOAD)) this.#isPinging = false;
  }
}
