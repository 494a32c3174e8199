// The life of one worker thread: commands in, events out, a heartbeat between; knows nothing of how traffic is served.
import { hashSession } from "../crypto/token.ts";
import { watchGarbage } from "../garbage.ts";
import { ManagementCookies } from "../http/management-cookies.ts";
import { Pace } from "../pace.ts";
import { WorkerCounters } from "../shared-counters/worker-counters.ts";
import { RequestRing } from "../shared-memory/request-ring.ts";
import { TargetBoard } from "../shared-memory/target-board.ts";
import { TrafficMetrics } from "../shared-memory/traffic-metrics.ts";
import { CounterTable } from "../shared-memory/counter-table.ts";
import { WorkerBoard } from "../shared-memory/worker-board.ts";
import type { StartCommand, WorkerCommand, WorkerEvent } from "../snapshot/message.ts";
import { abortSockets, findPoll } from "../system/thread-sockets.ts";
import type { PluginSource } from "../pdk/catalogue.ts";
import type { DataPlane, DataPlaneOptions, LogLine } from "./data-plane.ts";
import { TrafficRecorder } from "./traffic-recorder.ts";

const HEARTBEAT_MS = 250;
const PROGRESS_MS = 100;
/** A request needs several turns of the event loop, each of which may wait for a slice. */
const SLICE_MS = 2;

/** The thread's end of the channel to the supervisor. */
export interface WorkerPort {
  postMessage(event: WorkerEvent): void;
  addEventListener(type: "message", listener: (event: MessageEvent<WorkerCommand>) => void): void;
}

/**
 * Runs commands until the thread ends, one after the other: a `prepare` that arrives while the worker starts waits.
 * An exception ends the thread; the supervisor starts another one.
 */
export function runWorkerLoop(
  port: WorkerPort,
  createDataPlane: (options: DataPlaneOptions) => DataPlane,
  plugins: PluginSource,
): void {
  let started: StartedWorker | null = null;
  let last: Promise<void> = Promise.resolve();
  const serve = async (command: WorkerCommand): Promise<void> => {
    if (command.kind === "start") started = start(port, { createDataPlane, plugins }, command);
    else if (started === null) throw new Error(`command ${command.kind} before start`);
    else await runCommand(port, started, command);
  };
  port.addEventListener("message", ({ data }) => {
    // Not caught: a broken worker has to end, not to go on with half a version.
    last = last.then(() => serve(data));
  });
}

interface StartedWorker {
  readonly plane: DataPlane;
  readonly recorder: TrafficRecorder;
  readonly worker: number;
  readonly board: WorkerBoard;
  /** Hashes of management API sessions. */
  readonly sessions: Set<string>;
}

function start(
  port: WorkerPort,
  parts: {
    readonly createDataPlane: (options: DataPlaneOptions) => DataPlane;
    readonly plugins: PluginSource;
  },
  command: StartCommand,
): StartedWorker {
  const { worker, workers, instanceId, stickyKey, pluginKey, dnsServers } = command;
  const board = new WorkerBoard(command.shared.workers);
  const beat = () => board.set(worker, "heartbeat", Date.now());
  beat();
  const poll = findPoll();
  board.set(worker, "poll", poll);
  // Without the supervisor: an exception, or `process.exit` in a plugin.
  process.on("exit", () => {
    board.set(worker, "poll", 0);
    abortSockets(poll);
  });
  setInterval(beat, HEARTBEAT_MS);
  const { traffic, targetTraffic, requests } = command.shared;
  const recorder = new TrafficRecorder({
    worker,
    traffic: new TrafficMetrics(traffic),
    targetTraffic: new TrafficMetrics(targetTraffic),
    requests: requests === null ? null : new RequestRing(requests),
  });
  const sessions = new Set(command.sessions);
  const log: LogLine = (level, message, fields = {}) =>
    port.postMessage({ kind: "log", level, message, fields });
  const { sharedCounters: at } = command;
  const plane = parts.createDataPlane({
    managementCookies: new ManagementCookies(command.cookieId, (value) =>
      [true, false].some((isSecure) => sessions.has(hashSession(value, isSecure))),
    ),
    plugins: parts.plugins,
    pluginKey,
    logDirectories: command.logDirectories,
    bodyDirectory: command.bodyDirectory ?? null,
    counters: new CounterTable(command.shared.counters, { thread: command.thread }),
    sharedCounters:
      at === null ? null : new WorkerCounters(at, { board, worker, log, key: pluginKey }),
    used: (credentialIds) => port.postMessage({ kind: "used", credentialIds }),
    onUnknownName: (name) => port.postMessage({ kind: "wanted", name }),
    worker,
    workers,
    thread: command.thread,
    instanceId,
    board,
    stickyKey,
    dnsServers,
    httpEngine: command.httpEngine ?? null,
    maxCreateMs: command.maxCreateMs ?? null,
    managementAddresses: command.managementAddresses,
    targets: new TargetBoard(command.shared.targets, command.thread),
    recorder,
    pace: new Pace({ ms: SLICE_MS, rested: progressOf(port) }),
    log,
  });
  setInterval(() => plane.relieve(), HEARTBEAT_MS);
  watchGarbage((worker + 1) / (workers + 1));
  if (command.challenges !== undefined)
    plane.answer({ kind: "challenges", challenges: command.challenges });
  return { plane, recorder, worker, board, sessions };
}

/** Reports progress of long work at most every PROGRESS_MS. */
function progressOf(port: WorkerPort): () => void {
  let reportedAt = 0;
  return () => {
    const now = performance.now();
    if (now - reportedAt < PROGRESS_MS) return;
    reportedAt = now;
    port.postMessage({ kind: "progress" });
  };
}

async function runCommand(
  port: WorkerPort,
  { plane, recorder, worker, board, sessions }: StartedWorker,
  command: Exclude<WorkerCommand, StartCommand>,
): Promise<void> {
  switch (command.kind) {
    case "take":
      await plane.take(command.revision, command.piece);
      port.postMessage({ kind: "taken", revision: command.revision });
      return;
    case "prepare": {
      const { revision } = command.change;
      const issues = await plane.prepare(command.change);
      if (issues.length > 0) port.postMessage({ kind: "rejected", revision, issues });
      else port.postMessage({ kind: "prepared", revision });
      return;
    }
    case "activate":
      await plane.activate(command.revision);
      board.set(worker, "revision", command.revision);
      port.postMessage({ kind: "active", revision: command.revision });
      return;
    case "discard":
      plane.discard(command.revision);
      port.postMessage({ kind: "discarded", revision: command.revision });
      return;
    case "requests":
      recorder.useRing(command.buffer);
      return;
    case "keys":
      plane.useKeys(command.keys);
      return;
    case "management":
      plane.useManagement(command.addresses);
      return;
    case "session":
      if (command.isLive) sessions.add(command.hash);
      else sessions.delete(command.hash);
      return;
    case "ask":
      port.postMessage({
        kind: "answer",
        ticket: command.ticket,
        value: plane.answer(command.question),
      });
      return;
    case "stop_accepting":
      void plane.stopAccepting(command.lingerMs).then(() => port.postMessage({ kind: "closed" }));
      return;
    case "drain":
      // Questions about what still ends are answered meanwhile.
      void plane.drain(command).then((aborted) => port.postMessage({ kind: "stopped", aborted }));
      return;
    default: {
      const unknown: never = command;
      throw new Error(`unknown command ${JSON.stringify(unknown)}`);
    }
  }
}
