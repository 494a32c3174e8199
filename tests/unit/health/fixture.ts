// A service's targets over a board of their own, as several workers see them; no connections.
import { PassiveCheck } from "../../../src/dataplane/health/passive-check.ts";
import { type GroupTarget, TargetGroup } from "../../../src/dataplane/health/target-group.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Service, serviceInput } from "../../../src/model/service.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { checkFailed, override } from "../../../src/shared-memory/target-health.ts";

export interface TargetSketch {
  readonly weight?: number;
  readonly priority?: number;
}

export const serviceOf = (fields: object = {}): Service => ({
  ...decode(serviceInput, { name: "s", ...fields }),
  id: "s",
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
});

/** Targets `t0`, `t1` and so on. */
export function groupOf(sketches: readonly TargetSketch[], fields: object = {}, workers = 2) {
  // An hour old, so that targets can be older than this moment.
  const board = TargetBoard.create(workers, { now: Date.now() - 3_600_000 });
  const service = serviceOf(fields);
  const targets = sketches.map(({ weight = 100, priority = 0 }, index): GroupTarget => {
    const id = `t${index}`;
    const row = board.rowOf(id);
    return { id, weight, priority, row, epoch: board.get(row, "epoch") };
  });
  const rowsOf = (index: number) => ({
    target: targets[index]?.row ?? -1,
    service: board.rowOf("s"),
  });
  const groups = Array.from({ length: workers }, (_, worker) => {
    const group = new TargetGroup(service, targets, { board, worker });
    group.claim();
    return group;
  });
  const [group] = groups;
  if (group === undefined) throw new Error("no worker");
  return {
    board,
    group,
    groups,
    targets,
    rowsOf,
    /** Ids that are picked for new requests, each once, in order. */
    picked: (from = group, picks = 200) =>
      [
        ...new Set(
          Array.from({ length: picks }, () => from.pick({ key: null, tried: null })?.id ?? "none"),
        ),
      ].sort(),
    /** An active check finds it unhealthy. */
    fail: (index: number) =>
      checkFailed(board, rowsOf(index), {
        thresholds: { healthy: 1, unhealthy: 1 },
        failure: "the target refused the connection",
        now: Date.now(),
      }),
    order: (index: number, state: "healthy" | "unhealthy" | "auto", until: number | null = null) =>
      override(board, rowsOf(index), { state, until, now: Date.now() }),
    /** Whether passive checks have ejected it. */
    isEjected: (index: number) =>
      board.get(rowsOf(index).target, "ejected_until") > board.time(Date.now()),
    /** Advances the clock by this many seconds. */
    pass: (index: number, seconds: number) => {
      const { target } = rowsOf(index);
      board.set(target, "ejected_until", board.get(target, "ejected_until") - seconds * 10);
    },
  };
}

/** The passive check of a service with this many targets; `settings` override the defaults. */
export function passiveOf(count: number, settings: object = {}) {
  const scene = groupOf(
    Array.from({ length: count }, () => ({})),
    { health: { passive: settings } },
  );
  const { board, targets } = scene;
  const policy = serviceOf({ health: { passive: settings } }).health.passive;
  const rows = { service: board.rowOf("s"), targets: targets.map(({ row }) => row) };
  const check = new PassiveCheck(policy, board, () => rows);
  const row = (index: number) => targets[index]?.row ?? -1;
  return {
    ...scene,
    check,
    failed: (index: number, times = 1) => {
      for (let time = 0; time < times; time++)
        check.failed(row(index), "the target refused the connection");
    },
    answered: (index: number, status: number) => check.responded(row(index), status),
  };
}
