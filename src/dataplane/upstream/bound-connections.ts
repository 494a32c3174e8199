// The connections to targets that belong to one client's connection, because the client has authenticated on them; knows no HTTP.
import type { ConnectionHolder, ConnectionOwner, UpstreamConnection } from "./connection.ts";

export class BoundConnections implements ConnectionHolder {
  /** Whether there was none yet. */
  isEmpty = true;
  /** By pool. */
  #idle: Map<ConnectionOwner, UpstreamConnection> | null = null;
  #isClosed = false;

  /** The connection of that pool, for one request. */
  take(pool: ConnectionOwner): UpstreamConnection | null {
    const connection = this.#idle?.get(pool);
    if (connection === undefined) return null;
    this.#idle?.delete(pool);
    return connection.isOpen ? connection : null;
  }

  /** Holds an idle connection for the client's next request. */
  hold(connection: UpstreamConnection): void {
    if (this.#isClosed) return connection.destroy();
    this.isEmpty = false;
    this.#idle ??= new Map();
    this.#idle.get(connection.owner)?.destroy();
    this.#idle.set(connection.owner, connection);
  }

  /** The client has gone. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle?.values() ?? []) connection.destroy();
    this.#idle = null;
  }
}
