// What the streams of engines have in common that own their connections: the client's address, and whether it has gone.
import type { ConnectionInfo } from "../listener/connection-info.ts";

export abstract class ConnectedStream {
  abstract readonly connection: ConnectionInfo;
  protected isGone = false;
  #abort: AbortController | null = null;

  /** Made on first use: most requests end before anything asks. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.isGone) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** After `isGone` was set, and what the stream itself has to end. */
  protected abortSignal(): void {
    this.#abort?.abort();
  }

  peerAddress(): string {
    return this.connection.address;
  }

  get peerPort(): number {
    return this.connection.port;
  }

  // A connection with a request is not idle: the gateway's own timeouts apply to it.

  suspendIdleTimeout(): void {}

  restoreIdleTimeout(): void {}
}
