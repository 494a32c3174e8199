// A real pool of real threads that fail on demand, and versions for it.
import { createLog, type LogLevel } from "../../../src/log.ts";
import { decode } from "../../../src/model/decode.ts";
import { listenerInput } from "../../../src/model/listener.ts";
import { serviceInput } from "../../../src/model/service.ts";
import { settingsInput } from "../../../src/model/settings.ts";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { WorkerBoard } from "../../../src/shared-memory/worker-board.ts";
import type { Snapshot } from "../../../src/snapshot/snapshot.ts";
import { placesFor } from "../../../src/supervisor/retiring-worker.ts";
import { createRollout } from "../../../src/supervisor/rollout.ts";
import type { SupervisorTimes } from "../../../src/supervisor/times.ts";
import { WorkerPool } from "../../../src/supervisor/worker-pool.ts";
import type { WorkerLifecycleEvent } from "../../../src/supervisor/worker-slot.ts";
import { type Fault, faultName } from "./fault.ts";

const at = "2026-01-01T00:00:00.000Z";
// Decoded once: some versions have thousands.
const service = decode(serviceInput, { name: "any" });
const settings = { ...decode(settingsInput, {}), updated_at: at };

/** A free port. */
export function freePort(): number {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  probe.stop(true);
  return probe.port;
}

/** A version with the given listeners, in which workers fail as the fault says. */
export function snapshotOf(
  revision: number,
  { ports = [], faults = [] }: { ports?: readonly number[]; faults?: readonly Fault[] } = {},
): Snapshot {
  const services = faults.map((fault, index) => {
    const id = `${revision}-${index}`;
    return {
      id,
      service: { id, ...service, name: faultName(fault), created_at: at, updated_at: at },
      clientCertificate: null,
      targets: [],
    };
  });
  const listeners = ports.map((port) => {
    const id = `listener-${port}`;
    const fields = decode(listenerInput, { name: id, address: "127.0.0.1", port });
    return { id, listener: { id, ...fields, created_at: at, updated_at: at }, tls: null };
  });
  return {
    revision,
    services: new Map(services.map((plan) => [plan.id, plan])),
    routes: new Map(),
    listeners: new Map(listeners.map((plan) => [plan.id, plan])),
    certificates: new Map(),
    streamRoutes: new Map(),
    plugins: new Map(),
    consumers: noConsumers,
    settings,
  };
}

const noConsumers: Snapshot["consumers"] = {
  consumers: new Map(),
  credentials: new Map(),
  openSealed: (sealed) => sealed,
  change: null,
};

export interface LogLine {
  level: LogLevel;
  message: string;
  [field: string]: unknown;
}

export const PATIENT_MS = 60_000;

/** Two workers on revision 1, not started yet. */
export function poolOf(first: Snapshot, times: Partial<SupervisorTimes> = {}) {
  const log: LogLine[] = [];
  const events: WorkerLifecycleEvent[] = [];
  const counters = CounterTable.create({ keys: 100, workers: placesFor(2) });
  const pool = new WorkerPool({
    url: new URL("./faulty-worker.ts", import.meta.url),
    workers: 2,
    instanceId: "test",
    board: WorkerBoard.create(placesFor(2)),
    targets: TargetBoard.create(placesFor(2)),
    counters,
    stickyKey: "key",
    dnsServers: [],
    onWorkerEvent: (event) => void events.push(event),
    log: createLog({ level: "debug", format: "json", sink: (line) => log.push(JSON.parse(line)) }),
    snapshot: first,
    // Only a worker that a test has made fail may be late, however busy the machine is.
    times: { prepareMs: PATIENT_MS, activateMs: PATIENT_MS, firstPauseMs: 5, ...times },
  });
  return {
    pool,
    /** Other times from now on: short ones for the step that fails. */
    setTimes: (later: Partial<SupervisorTimes>) => void Object.assign(pool.times, later),
    rollout: createRollout(pool),
    counters,
    log,
    events,
    [Symbol.asyncDispose]: () => stop(pool),
  };
}

async function stop(pool: WorkerPool): Promise<void> {
  await pool.drain(100);
}
