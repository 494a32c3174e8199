// The database of a fleet in memory: the log, and what nodes report. Loses nothing.
import type { Entry } from "../../../src/fleet/entry.ts";
import type { FleetNode, FleetSource, Heartbeat, LogEnd } from "../../../src/fleet/source.ts";
import { MemorySource } from "./memory-source.ts";

export class MemoryFleet extends MemorySource implements FleetSource {
  readonly #rows = new Map<string, { readonly row: Heartbeat; readonly seenAt: number }>();
  readonly #wakes = new Set<(position: number) => void>();

  /** Number of nodes. */
  get size(): number {
    return this.#rows.size;
  }

  override async append(entry: Entry): Promise<boolean> {
    const isAdded = await super.append(entry);
    if (isAdded) for (const wake of this.#wakes) wake(entry.position);
    return isAdded;
  }

  async beat(row: Heartbeat): Promise<LogEnd> {
    this.#rows.set(row.id, { row, seenAt: performance.now() });
    const { length: position } = this.entries;
    return { position, id: this.entries.at(-1)?.id ?? null, at: Date.now() };
  }

  async nodes(): Promise<readonly FleetNode[]> {
    const now = performance.now();
    return [...this.#rows.values()].map(({ row, seenAt }) => ({
      ...row,
      seenMsAgo: now - seenAt,
      leads: false,
      head: this.entries.length,
    }));
  }

  async forget(id: string): Promise<void> {
    this.#rows.delete(id);
  }

  async forgetAway(id: string, awayMs: number): Promise<boolean> {
    const known = this.#rows.get(id);
    if (known === undefined || performance.now() - known.seenAt < awayMs) return false;
    return this.#rows.delete(id);
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  async listen(wake: (position: number) => void): Promise<boolean> {
    this.#wakes.add(wake);
    return true;
  }

  reconnect(): void {}

  async close(): Promise<void> {}
}
