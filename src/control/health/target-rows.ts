// Gives every target and service in use its row on the board and takes it back when the last request has ended; knows no health.
import { ApiError, type Issue } from "../../model/error.ts";
import type { Target } from "../../model/target.ts";
import {
  connectionsKey,
  IN_FLIGHT_KEY,
  inFlightKey,
  streamBoardKey,
} from "../../shared-memory/series-key.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { endEjection, forget } from "../../shared-memory/target-health.ts";
import { diffMaps } from "../../snapshot/diff.ts";
import type { ServicePlan, Snapshot } from "../../snapshot/snapshot.ts";
import type { Rollout } from "../change.ts";

type Plans = Snapshot["services"];

/**
 * Rows are made here before workers ask for them, and whether there is room for them is found out while a version is prepared:
 * a board that is full refuses a change instead of ending a worker. Stands between the changes and the workers: every version
 * passes through it.
 */
export class TargetRows implements Rollout {
  readonly #board: TargetBoard;
  readonly #rollout: Rollout;
  #served: Snapshot;
  #next: Snapshot | null = null;
  /** Out of use, but requests may still be in flight on them. */
  readonly #leaving = new Set<string>();

  /** Throws an ApiError when there is no room for what is served first. */
  constructor(board: TargetBoard, rollout: Rollout, served: Snapshot) {
    this.#board = board;
    this.#rollout = rollout;
    this.#served = served;
    this.#requireRoom(null, served);
    for (const key of newKeys(null, served)) board.rowOf(key);
  }

  async prepare(next: Snapshot): Promise<readonly Issue[]> {
    this.sweep();
    this.#requireRoom(this.#served, next);
    this.#next = next;
    return this.#rollout.prepare(next);
  }

  async activate(revision: number): Promise<void> {
    const left = this.#take();
    try {
      await this.#rollout.activate(revision);
    } finally {
      for (const id of left) this.#leaving.add(id);
      this.sweep();
    }
  }

  discard(revision: number): Promise<void> {
    this.#next = null;
    return this.#rollout.discard(revision);
  }

  status() {
    return this.#rollout.status();
  }

  /** Gives up rows on which nothing is in flight any more; call it now and then. */
  sweep(): void {
    for (const id of this.#leaving) if (this.#board.release(id)) this.#leaving.delete(id);
  }

  #requireRoom(before: Snapshot | null, next: Snapshot): void {
    const { capacity, inUse } = this.#board;
    let room = capacity - inUse;
    for (const key of newKeys(before, next)) {
      if (this.#board.findRow(key) !== null || --room >= 0) continue;
      throw new ApiError(
        409,
        `there is no room for so many targets and services: ${capacity} may be enabled together`,
      );
    }
  }

  /** Makes the next version the served one; returns what is out of use then. */
  #take(): ReadonlySet<string> {
    const next = this.#next ?? this.#served;
    for (const key of newKeys(this.#served, next)) this.#board.rowOf(key);
    const { before, after } = changedPlans(this.#served.services, next.services);
    const left = new Set(before.flatMap(idsOf));
    for (const id of after.flatMap(idsOf)) {
      left.delete(id);
      this.#leaving.delete(id);
    }
    this.#forgetMoved(before, after);
    this.#endEjections(before, after);
    this.#served = next;
    this.#next = null;
    return left;
  }

  /** Another server is behind the target now: what was learned about the one before says nothing about it. */
  #forgetMoved(before: readonly ServicePlan[], after: readonly ServicePlan[]): void {
    const old = new Map<string, Target>();
    for (const { targets } of before) for (const target of targets) old.set(target.id, target);
    for (const { id, targets } of after)
      for (const target of targets) {
        const was = old.get(target.id);
        if (was === undefined || (was.host === target.host && was.port === target.port)) continue;
        const rows = { target: this.#board.rowOf(target.id), service: this.#board.rowOf(id) };
        forget(this.#board, rows, Date.now());
      }
  }

  /** Whoever switches passive checks off wants those targets back that they have taken out. */
  #endEjections(before: readonly ServicePlan[], after: readonly ServicePlan[]): void {
    const watched = new Set<string>();
    for (const { id, service } of before) if (service.health.passive.enabled) watched.add(id);
    for (const { id, service, targets } of after) {
      if (service.health.passive.enabled || !watched.has(id)) continue;
      const row = this.#board.rowOf(id);
      for (const target of targets)
        endEjection(
          this.#board,
          { target: this.#board.rowOf(target.id), service: row },
          Date.now(),
        );
    }
  }
}

/** Plans that differ between what is served and `next`, as they are and as they will be. */
function changedPlans(served: Plans, next: Plans) {
  const { upserts, removals } = diffMaps(served, next);
  const ids = [...upserts.map(({ id }) => id), ...removals];
  const before = ids.flatMap((id) => served.get(id) ?? []);
  return { before, after: upserts };
}

const idsOf = ({ id, targets }: ServicePlan) => [id, ...targets.map((target) => target.id)];

/** Keys of the rows that workers look for in what `next` changes; some of them are there already. */
function* newKeys(before: Snapshot | null, next: Snapshot): Generator<string> {
  for (const plan of diffMaps(before?.services, next.services).upserts) yield* idsOf(plan);
  for (const { id } of diffMaps(before?.streamRoutes, next.streamRoutes).upserts)
    yield streamBoardKey(id);
  for (const { id, listener } of diffMaps(before?.listeners, next.listeners).upserts) {
    yield connectionsKey(id);
    if (listener.max_in_flight_requests > 0) yield inFlightKey(id);
  }
  if (next.settings.limits.max_in_flight_total > 0) yield IN_FLIGHT_KEY;
}
