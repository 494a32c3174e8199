// Gives every target and service in use its row on the board and takes it back when the last request has ended; knows no health.
import { ApiError, type Issue } from "../../model/error.ts";
import type { Target } from "../../model/target.ts";
import { BoardFullError, type TargetBoard } from "../../shared-memory/target-board.ts";
import { endEjection, forget } from "../../shared-memory/target-health.ts";
import { diffMaps } from "../../snapshot/diff.ts";
import type { ServicePlan, Snapshot } from "../../snapshot/snapshot.ts";
import type { Rollout } from "../change.ts";

type Plans = Snapshot["services"];

/**
 * Rows are made here before workers ask for them, so that a board without room refuses a change instead of ending a worker.
 * Stands between the changes and the workers: every version passes through it.
 */
export class TargetRows implements Rollout {
  readonly #board: TargetBoard;
  readonly #rollout: Rollout;
  #served: Plans = new Map();
  #next: Plans | null = null;
  /** Out of use, but requests may still be in flight on them. */
  readonly #leaving = new Set<string>();

  /** Throws an ApiError when there is no room for what is served first. */
  constructor(board: TargetBoard, rollout: Rollout, served: Plans) {
    this.#board = board;
    this.#rollout = rollout;
    this.#reserve(served);
    this.#served = served;
  }

  async prepare(next: Snapshot): Promise<readonly Issue[]> {
    this.sweep();
    this.#next = next.services;
    this.#reserve(next.services);
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
    for (const id of this.#onlyNext()) this.#leaving.add(id);
    this.#next = null;
    return this.#rollout.discard(revision);
  }

  status() {
    return this.#rollout.status();
  }

  /** Gives up rows on which nothing is in flight any more; call it now and then. */
  sweep(): void {
    // What the next version uses must not go, and it is not known yet whether that version comes.
    if (this.#next !== null) return;
    for (const id of this.#leaving) if (this.#board.release(id)) this.#leaving.delete(id);
  }

  #reserve(next: Plans): void {
    try {
      for (const plan of diffMaps(this.#served, next).upserts)
        for (const id of idsOf(plan)) this.#board.rowOf(id);
    } catch (error) {
      if (!(error instanceof BoardFullError)) throw error;
      const { capacity } = this.#board;
      throw new ApiError(
        409,
        `there is no room for so many targets and services: ${capacity} may be enabled together`,
      );
    }
  }

  /** Makes the next version the served one; returns what is out of use then. */
  #take(): ReadonlySet<string> {
    const next = this.#next ?? this.#served;
    const { before, after } = this.#changed(next);
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

  #onlyNext(): ReadonlySet<string> {
    if (this.#next === null) return new Set();
    const { before, after } = this.#changed(this.#next);
    const ids = new Set(after.flatMap(idsOf));
    for (const id of before.flatMap(idsOf)) ids.delete(id);
    return ids;
  }

  /** Plans that differ between what is served and `next`, as they are and as they will be. */
  #changed(next: Plans) {
    const { upserts, removals } = diffMaps(this.#served, next);
    const ids = [...upserts.map(({ id }) => id), ...removals];
    const before = ids.flatMap((id) => this.#served.get(id) ?? []);
    return { before, after: upserts };
  }
}

const idsOf = ({ id, targets }: ServicePlan) => [id, ...targets.map((target) => target.id)];
