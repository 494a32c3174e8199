// Assigns every target and service in use a row on the board and releases it after its last request; knows no health.
import { ApiError } from "../../model/error.ts";
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
import type { RolloutObserver, VersionStep } from "../../snapshot/rollout.ts";
import type { ServicePlan, Snapshot } from "../../snapshot/snapshot.ts";

type Plans = Snapshot["services"];

/**
 * Creates rows before workers look for them, and checks for room while a version is prepared: a full board refuses a change
 * instead of ending a worker.
 */
export class TargetBoardRows implements RolloutObserver {
  readonly #board: TargetBoard;
  /** Rows out of use that may still have requests in flight. */
  readonly #leaving = new Set<string>();

  /** Throws an ApiError when there is no room for the first version. */
  constructor(board: TargetBoard, served: Snapshot) {
    this.#board = board;
    this.#requireRoom(null, served);
    for (const key of newKeys(null, served)) board.rowOf(key);
  }

  check({ before, after }: VersionStep): void {
    this.sweep();
    this.#requireRoom(before, after);
  }

  beforeActivation({ before, after }: VersionStep): void {
    for (const key of newKeys(before, after)) this.#board.rowOf(key);
    const plans = changedPlans(before.services, after.services);
    for (const id of plans.after.flatMap(idsOf)) this.#leaving.delete(id);
    this.#forgetMoved(plans);
    this.#endEjections(plans);
  }

  afterActivation({ before, after }: VersionStep): void {
    const plans = changedPlans(before.services, after.services);
    const inUse = new Set(plans.after.flatMap(idsOf));
    for (const id of plans.before.flatMap(idsOf)) if (!inUse.has(id)) this.#leaving.add(id);
    this.sweep();
  }

  /** Releases rows without requests in flight; called periodically. */
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

  /** Resets the health of targets with another address: it is another server. */
  #forgetMoved({ before, after }: ChangedPlans): void {
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

  /** Disabling passive checks ends their ejections. */
  #endEjections({ before, after }: ChangedPlans): void {
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

/** Plans that differ between two versions, from each version. */
interface ChangedPlans {
  readonly before: readonly ServicePlan[];
  readonly after: readonly ServicePlan[];
}

function changedPlans(served: Plans, next: Plans): ChangedPlans {
  const { upserts, removals } = diffMaps(served, next);
  const ids = [...upserts.map(({ id }) => id), ...removals];
  const before = ids.flatMap((id) => served.get(id) ?? []);
  return { before, after: upserts };
}

const idsOf = ({ id, targets }: ServicePlan) => [id, ...targets.map((target) => target.id)];

/** Keys of the rows that workers need for the changes of `next`; some of them exist already. */
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
