// Composes the use cases of health and runs their periodic checks; knows no HTTP.
import type { Log } from "../../log.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import type { AuditSink } from "../audit-entry.ts";
import type { EventHub } from "../events.ts";
import { HealthUseCases } from "./health.ts";
import { HealthWatch } from "./health-watch.ts";
import { HealthOverrides, type OverrideOptions } from "./overrides.ts";
import type { TargetBoardRows } from "./target-board-rows.ts";
import type { TargetStates } from "./target-states.ts";

export type { HealthUseCases } from "./health.ts";

const CHECK_MS = 1000;

export interface HealthParts extends Omit<OverrideOptions, "board"> {
  readonly targetBoard: TargetBoard;
  readonly rows: TargetBoardRows;
  readonly states: TargetStates;
  readonly audit: AuditSink;
  readonly events: EventHub;
  readonly log: Log;
}

/** The use cases; from here on a timer releases rows and reports changes of health. */
export function createHealth(parts: HealthParts): HealthUseCases {
  const { targetBoard: board, rows, events } = parts;
  const publish = events.publish.bind(events, "health");
  const watch = new HealthWatch({ ...parts, board, publish });
  const check = () => {
    rows.sweep();
    watch.check();
  };
  // The timer must not delay the end of the process.
  setInterval(check, CHECK_MS).unref();
  const overrides = new HealthOverrides({ ...parts, board });
  return new HealthUseCases({ ...parts, overrides });
}
