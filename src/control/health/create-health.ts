// Puts the parts around health together and lets them look at the time; knows no HTTP.
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import type { AuditSink } from "../audit-entry.ts";
import type { Changes } from "../change.ts";
import type { EventHub } from "../events.ts";
import { HealthUseCases } from "./health.ts";
import { HealthWatch } from "./health-watch.ts";
import type { TargetRows } from "./target-rows.ts";
import type { TargetStates } from "./target-states.ts";

export type { HealthUseCases } from "./health.ts";

const LOOK_MS = 1000;

export interface HealthParts {
  readonly targetBoard: TargetBoard;
  readonly rows: TargetRows;
  readonly states: TargetStates;
  readonly changes: Changes;
  readonly audit: AuditSink;
  readonly events: EventHub;
  readonly clock: Clock;
  readonly log: Log;
}

/** The use-cases; besides, rows are given up and changes of health are told from here on. */
export function createHealth(parts: HealthParts): HealthUseCases {
  const { targetBoard: board, rows, events } = parts;
  const publish = events.publish.bind(events, "health");
  const watch = new HealthWatch({ ...parts, board, publish });
  const look = () => {
    rows.sweep();
    watch.look();
  };
  // Nothing is kept alive by looking on.
  setInterval(look, LOOK_MS).unref();
  return new HealthUseCases({ ...parts, board });
}
