// Current health and load of targets, from the memory that all workers share; changes nothing.
import type { Clock } from "../../clock.ts";
import type { Target } from "../../model/target.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { type Health, readHealth } from "../../shared-memory/target-health.ts";
import type { TargetHealth, TargetView } from "../representation.ts";

const UNKNOWN: Health = {
  state: "unknown",
  since: null,
  lastError: null,
  by: null,
  isCertain: true,
  override: null,
  observed: "unknown",
};

export class TargetStates {
  readonly #board: TargetBoard;
  readonly #clock: Clock;

  constructor(board: TargetBoard, clock: Clock) {
    this.#board = board;
    this.#clock = clock;
  }

  /** The representation of a target. */
  readonly view = (target: Target): TargetView => {
    const row = this.#board.findRow(target.id);
    return {
      ...target,
      health: this.#healthOf(target),
      active_requests: row === null ? 0 : this.#board.active(row),
    };
  };

  /** State from checks, traffic and overrides, regardless of the configuration. */
  read(target: Target): Health {
    const row = this.#board.findRow(target.id);
    return row === null ? UNKNOWN : readHealth(this.#board, row, this.#clock.now());
  }

  #healthOf(target: Target): TargetHealth {
    const { state, since, lastError } = this.read(target);
    if (!target.enabled) return { state: "disabled", since: target.updated_at, last_error: null };
    if (target.weight === 0)
      return { state: "draining", since: target.updated_at, last_error: lastError };
    const at = since === null ? target.created_at : new Date(since).toISOString();
    return { state, since: at, last_error: lastError };
  }
}
