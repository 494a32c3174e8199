// Whether the gateway responds, and when it last did; knows no page.
import { useSyncExternalStore } from "react";
import { useConnection } from "./connection-context.ts";

/** Fed by each request of the connection. */
export class Reachability {
  #lastSeen = Date.now();
  /** Since when it does not respond: the time of its last response; null: it responds. */
  #lostAt: number | null = null;
  readonly #listeners = new Set<() => void>();

  seen(): void {
    this.#lastSeen = Date.now();
    this.#set(null);
  }

  missed(): void {
    this.#set(this.#lostAt ?? this.#lastSeen);
  }

  readonly lostAt = (): number | null => this.#lostAt;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #set(lostAt: number | null): void {
    if (this.#lostAt === lostAt) return;
    this.#lostAt = lostAt;
    for (const listener of this.#listeners) listener();
  }
}

/** The time of the gateway's last response, while it does not respond; null: it does. */
export function useLostAt(): number | null {
  const { reachability } = useConnection();
  return useSyncExternalStore(reachability.subscribe, reachability.lostAt);
}
