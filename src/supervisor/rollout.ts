// Rolls a version out to all workers in two steps, prepare and activate, or to none; knows no database and no content of a version.
import { availableParallelism } from "node:os";

import { ApiError, type Issue, noWorker, unavailable } from "../model/error.ts";
import { diff, diffMaps, diffRoutes } from "../snapshot/diff.ts";
import { PIECE_OBJECTS, sizeOf } from "../snapshot/pieces.ts";
import type { Rollout } from "../snapshot/rollout.ts";
import type { PluginPlan, Snapshot, SnapshotChange } from "../snapshot/snapshot.ts";
import { tryPlugins, untriedPlans } from "./plugin-trial.ts";
import type { WorkerPool } from "./worker-pool.ts";
import type { WorkerSlot } from "./worker-slot.ts";
import { NoAnswer } from "./worker-thread.ts";

export function createRollout(pool: WorkerPool): Rollout {
  return new PoolRollout(pool);
}

class PoolRollout implements Rollout {
  readonly #pool: WorkerPool;
  #next: Snapshot | null = null;

  constructor(pool: WorkerPool) {
    this.#pool = pool;
  }

  async prepare(whole: Snapshot): Promise<readonly Issue[]> {
    const { active, consumers, routes, unbound } = this.#pool;
    const { issues: taken, snapshot: next } = await unbound.admit(active, whole);
    if (taken.length > 0) return taken;
    // The plugin may hang each worker as soon as it serves, so that none could agree; activation replaces those that are not ready.
    const isUrgent = disablesOnly(active, next);
    // A slot without a thread starts with the version that is active by then.
    const slots = this.#pool.slots.filter((slot) =>
      isUrgent ? slot.servedRevision !== null : slot.isLive,
    );
    if (slots.length === 0 && !isUrgent) throw noWorker("; nothing was changed");
    // Before a serving thread runs it: a refused change costs no client its connection.
    const untried = untriedPlans(active, next, this.#pool.definitionOf);
    const refused = await tryPlugins(next, untried, this.#pool.trial);
    if (refused.length > 0) return refused as readonly Issue[];
    this.#next = next;
    const change = diff(active, next, {
      consumers: consumers.write(active, next),
      routes: await routes.write(diffRoutes(active.routes, next.routes)),
      withShared: (plan) => this.#pool.withShared(plan),
    });
    const answers = await prepareAll(slots, change, isUrgent ? slots.length : atOnce(change));
    const failure = isUrgent ? -1 : answers.findIndex(({ status }) => status === "rejected");
    const issues = answers.flatMap((answer) =>
      answer.status === "fulfilled" && answer.value.length > 0 ? [answer.value] : [],
    );
    if (failure === -1 && issues.length === 0) return [];
    await this.discard(next.revision);
    // Workers mostly reject a version for the same reason: one list is enough.
    if (issues[0] !== undefined) return issues[0];
    throw prepareError(slots[failure], answers[failure], next.revision);
  }

  async activate(revision: number): Promise<void> {
    const next = this.#next;
    if (next?.revision !== revision) throw new Error(`revision ${revision} was not prepared`);
    this.#pool.endRemoved(next);
    this.#pool.active = next;
    this.#pool.unbound.commit();
    this.#pool.consumers.commit();
    this.#pool.routes.commit();
    this.#next = null;
    const served = await Promise.all(
      this.#pool.slots.map((slot) => this.#activateSlot(slot, revision)),
    );
    this.#pool.retain(next.plugins);
    if (served.includes(false))
      throw new ApiError(500, `revision ${revision} is stored but not yet served by every worker`);
  }

  async discard(revision: number): Promise<void> {
    this.#next = null;
    this.#pool.unbound.rollback();
    this.#pool.consumers.rollback();
    this.#pool.routes.rollback();
    this.#pool.retain(this.#pool.active.plugins);
    // The next change may want the same ports.
    await Promise.all(this.#pool.slots.map((slot) => slot.discard(revision)));
  }

  status() {
    const { slots, active } = this.#pool;
    const unbound = this.#pool.unbound.list();
    return {
      ...(unbound.length === 0 ? {} : { unbound }),
      workers: slots.length,
      ready: slots.filter((slot) => slot.servedRevision === active.revision).length,
      revision: active.revision,
    };
  }

  async #activateSlot(slot: WorkerSlot, revision: number): Promise<boolean> {
    try {
      await slot.activate(revision);
      return true;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      // It may still serve the previous version, or have been started with it while the new one was prepared.
      slot.replace(`does not serve revision ${revision}`);
      return slot.becomesReady(this.#pool.times.replaceMs);
    }
  }
}

async function prepareAll(
  slots: readonly WorkerSlot[],
  change: SnapshotChange,
  most: number,
): Promise<PromiseSettledResult<readonly Issue[]>[]> {
  const answers: PromiseSettledResult<readonly Issue[]>[] = [];
  const step = Math.min(slots.length, most);
  for (let at = 0; at < slots.length; at += step) {
    const some = slots.slice(at, at + step);
    answers.push(...(await Promise.allSettled(some.map((slot) => slot.prepare(change)))));
    if (answers.some(({ status }) => status === "rejected")) break;
  }
  return answers;
}

const others = [
  "services",
  "routes",
  "listeners",
  "streamRoutes",
  "certificates",
] as const satisfies readonly (keyof Snapshot)[];

/** Whether the next version is the active one with code from a directory that must not run any more. */
function disablesOnly(active: Snapshot, next: Snapshot): boolean {
  const { upserts, removals } = diffMaps(active.plugins, next.plugins);
  const isOther = ({ code }: PluginPlan) => code === undefined || code.disabled === null;
  if (upserts.length === 0 || removals.length > 0 || upserts.some(isOther)) return false;
  return others.every((name) => {
    const change = diffMaps<unknown>(active[name], next[name]);
    return change.upserts.length + change.removals.length === 0;
  });
}

/** Number of workers that prepare a change at the same time. A busy one serves its clients later, the others as before. */
function atOnce(change: SnapshotChange): number {
  const { upserts, removals } = change.certificates;
  // Code from a directory may block or end a worker: the others must go on.
  if (change.plugins.upserts.some(({ code }) => code !== undefined)) return 1;
  // With thousands of certificates a worker needs 100 ms, in which it serves no request.
  if (upserts.length + removals.length > 0) return 1;
  if (sizeOf(change) <= PIECE_OBJECTS) return Number.POSITIVE_INFINITY;
  return Math.max(1, Math.floor(availableParallelism() / 2));
}

function prepareError(
  slot: WorkerSlot | undefined,
  answer: PromiseSettledResult<unknown> | undefined,
  revision: number,
): ApiError {
  const cause: unknown = answer?.status === "rejected" ? answer.reason : undefined;
  const what =
    cause instanceof NoAnswer && cause.reason === "silent" ? "did not answer" : "stopped";
  return unavailable(
    `worker ${(slot?.index ?? 0) + 1} ${what} while preparing revision ${revision}; nothing was changed: the gateway replaces it, so repeat the change`,
    cause,
  );
}
