// Composes the use cases of health and runs their periodic checks; knows no HTTP.
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import type { AuditSink } from "../audit-entry.ts";
import type { Changes } from "../change.ts";
import type { EventHub } from "../events.ts";
import { HealthUseCases } from "./health.ts";
import { HealthWatch } from "./health-watch.ts";
import type { TargetBoardRows } from "./target-board-rows.ts";
import type { TargetStates } from "./target-states.ts";

export type { HealthUseCases } from "./health.ts";

const CHECK_MS = 1000;

export interface HealthParts {
  readonly targetBoard: TargetBoard;
  readonly rows: TargetBoardRows;
  readonly states: TargetStates;
  readonly changes: Changes;
  readonly audit: AuditSink;
  readonly events: EventHub;
  readonly clock: Clock;
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
  return new HealthUseCases({ ...parts, board });
}
