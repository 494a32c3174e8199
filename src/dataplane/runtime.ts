// The data plane of one worker: serves the live version, prepares the next one and swaps them; knows no thread and no database.
import { Dialer } from "../dialer/dialer.ts";
import type { ListenAddress } from "../net/destinations.ts";
import { WorkerDestinations } from "./worker-destinations.ts";
import { loopToken } from "../http/cdn-loop.ts";
import type { Issue } from "../model/error.ts";
import { CounterTable } from "../shared-memory/counter-table.ts";
import type { Drain, WorkerAnswer, WorkerKeys, WorkerQuestion } from "../snapshot/message.ts";
import { Pace } from "../pace.ts";
import type { SnapshotChange, SnapshotPiece } from "../snapshot/snapshot.ts";
import { abortObserver, AbortedRequests } from "./aborted-requests.ts";
import { BufferBudget } from "./buffer-budget.ts";
import { Candidate, type PreparedVersion } from "./candidate.ts";
import { OpenChallenges } from "./challenges.ts";
import type { DataPlane, DataPlaneOptions } from "./data-plane.ts";
import { explain } from "./explain.ts";
import type { Generation } from "./generation.ts";
import { ActiveChecks } from "./health/active-check.ts";
import { InFlight } from "./in-flight.ts";
import { ConnectionLimits } from "./listener/connection-limits.ts";
import { Listeners } from "./listener/listeners.ts";
import { logRefusals } from "./listener/refusal-log.ts";
import { NameResolver } from "./names/name-resolver.ts";
import { OpenConnections } from "./open-connections.ts";
import { Overload } from "./overload.ts";
import { createCallout } from "./plugin/callout.ts";
import { CredentialUses } from "./plugin/credential-uses.ts";
import { DeferredLogQueue } from "./plugin/deferred-log-queue.ts";
import { createGeo } from "./plugin/geo.ts";
import { PluginHost } from "./plugin/plugin-host.ts";
import { PluginLoader, type PluginLoaderOptions } from "./plugin/plugin-loader.ts";
import { PluginSet } from "./plugin/plugin-set.ts";
import { streamPluginHost } from "./plugin/stream-plugin-context.ts";
import { forward, type Pipeline, type Serving, streamHandler } from "./request/pipeline.ts";
import { ReadyRoutes } from "./route-index.ts";
import { PoolRegistry } from "./service-runtime.ts";
import { Streams, type StreamsOptions } from "./stream/streams.ts";
import { UdpStreams } from "./stream/udp-streams.ts";
import { TrafficRecorder } from "./traffic-recorder.ts";
import { createWebSockets } from "./websocket/sessions.ts";
import type { WorkerServices } from "./worker-services.ts";
import { RequestBuffers } from "./request-buffers.ts";

/** Time for plugins to send what they have buffered when the worker stops; the supervisor waits for 1 s. */
const PLUGIN_CLOSE_MS = 800;

/** Time for WebSockets to close after a linger period. */
const WEBSOCKET_CLOSE_MS = 1000;

export function createDataPlane(options: DataPlaneOptions): DataPlane {
  return new Runtime(options);
}

class Runtime implements DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #worker: WorkerServices;
  readonly #recorder: TrafficRecorder;
  readonly #pools: PoolRegistry;
  readonly #checks: ActiveChecks;
  readonly #webSockets: ReturnType<typeof createWebSockets>;
  readonly #streams: Streams;
  readonly #udp: UdpStreams;
  readonly #open: OpenConnections;
  readonly #listeners: Listeners;
  readonly #sweeper: Timer;
  readonly #plugins: PluginLoader;
  readonly #uses = new CredentialUses(performance.now());
  readonly #deferredLogs = new DeferredLogQueue();
  readonly #readyRoutes = new ReadyRoutes();
  readonly #pace: Pace;
  #stickyKey: string;
  readonly #destinations: WorkerDestinations;
  readonly #serving: Serving = { pipeline: null, isHandingOver: false };
  #candidate: Candidate | null = null;
  #stopped: Promise<void> | null = null;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
    this.#pace = options.pace ?? new Pace();
    this.#stickyKey = options.stickyKey;
    this.#destinations = new WorkerDestinations(options.managementAddresses);
    const inFlight = new InFlight();
    this.#recorder = options.recorder ?? TrafficRecorder.unread();
    this.#pools = new PoolRegistry(inFlight.now, {
      resolver: new NameResolver({ servers: options.dnsServers }),
      now: () => performance.now(),
      log: options.log,
      problemOf: this.#destinations.problemOf,
    });
    this.#checks = new ActiveChecks({ board: options.targets, worker: options.worker });
    this.#webSockets = createWebSockets({
      worker: options.worker,
      onCount: (open) => options.board.set(options.worker, "open_websockets", open),
      timeouts: options.webSocketTimeouts,
    });
    const bufferBudget = new BufferBudget(0);
    this.#worker = {
      index: options.worker,
      board: options.board,
      pressure: options.board.pressureCell(),
      requestsTotal: options.board.cell(options.worker, "requests_total"),
      targets: options.targets,
      log: options.log,
      inFlight,
      recorder: this.#recorder,
      webSockets: this.#webSockets,
      bufferBudget,
      requestBuffers: new RequestBuffers({
        directory: options.bodyDirectory ?? null,
        budget: bufferBudget,
      }),
      overload: new Overload(options),
      challenges: new OpenChallenges(options.onUnknownName ?? (() => {})),
      aborted: new AbortedRequests(abortObserver(options)),
      // All workers read the same files: only one logs their problems.
      geo: createGeo(options.worker % (options.workers ?? 1) === 0 ? options.log : () => {}),
    };
    const { rules } = this.#destinations;
    this.#plugins = createPluginLoader(options, {
      dialer: new Dialer({ rules }),
      callout: createCallout({ ...options, loopToken: loopToken(options.instanceId), rules }),
      used: (id) => this.#uses.note(id),
      dropped: (plugin, count) => this.#recorder.dropped(plugin, count),
    });
    const streamOptions = this.#streamOptions();
    this.#streams = new Streams(streamOptions);
    this.#udp = new UdpStreams(streamOptions);
    this.#open = new OpenConnections({
      streams: this.#streams,
      udp: this.#udp,
      webSockets: this.#webSockets,
    });
    this.#listeners = new Listeners({
      serveOn: (id, key) => streamHandler(this.#serving, { id, key, worker: this.#worker }),
      websocket: this.#webSockets.handler,
      limits: new ConnectionLimits(options.targets, options.worker),
      adopt: (key, preread) => this.#streams.adopt(key, preread),
      refused: logRefusals((fields) => options.log("warn", "connections refused", fields)),
      onHttp2End: (reason) => options.board.add(options.worker, `http2_${reason}`, 1),
      onHandshake: (id, isDone) => this.#recorder.handshake(id, isDone),
      challenges: this.#worker.challenges,
      failed: (issue) => options.log("error", "a listener could not change", { ...issue }),
      engine: options.httpEngine,
    });
    this.#sweeper = setInterval(() => this.#sweep(), 1000);
  }

  #streamOptions(): StreamsOptions {
    const { worker, targets: board, log } = this.#options;
    const { overload, geo } = this.#worker;
    return {
      worker,
      board,
      recorder: this.#recorder,
      refused(reason, fields) {
        // Load shedding is already in the log.
        if (!overload.isShedding) log("warn", "stream refused", { reason, ...fields });
      },
      isShedding: () => overload.isShedding,
      plugins: streamPluginHost(
        geo,
        (plugin, decision) => this.#recorder.decided(plugin, decision),
        log,
      ),
    };
  }

  async take(revision: number, piece: SnapshotPiece): Promise<void> {
    this.#pace.begin();
    await this.#candidateFor(revision).take(piece);
  }

  async prepare(change: SnapshotChange): Promise<readonly Issue[]> {
    this.#pace.begin();
    // Names of the first version are looked up while it is prepared.
    if (this.#live === null && change.settings !== null) this.#destinations.permit(change.settings);
    const candidate = this.#candidateFor(change.revision);
    const issues = await candidate.prepare(change);
    if (issues.length > 0) this.discard(change.revision);
    return issues;
  }

  /** The candidate for the revision, or a new one. */
  #candidateFor(revision: number): Candidate {
    const known = this.#candidate;
    if (known?.revision === revision && known.prepared === null) return known;
    if (known !== null) this.discard(known.revision);
    const { worker, instanceId, managementCookies, targets: board } = this.#options;
    this.#candidate = new Candidate(revision, {
      worker,
      instanceId,
      managementCookies,
      board,
      stickyKey: this.#stickyKey,
      live: this.#live,
      pace: this.#pace,
      pools: this.#pools,
      ready: this.#readyRoutes,
      plugins: this.#plugins,
      listeners: this.#listeners,
      streams: this.#streams,
      udp: this.#udp,
      geo: this.#worker.geo,
    });
    return this.#candidate;
  }

  async activate(revision: number): Promise<void> {
    this.#pace.begin();
    const candidate = this.#candidate;
    const prepared = candidate?.prepared ?? null;
    if (candidate?.revision !== revision || prepared === null)
      throw new Error(`revision ${revision} was not prepared`);
    this.#candidate = null;
    await candidate.intents.activate(this.#pace);
    this.#serve(prepared);
  }

  /** Swaps the versions in one step; replaced parts drain. */
  #serve(prepared: PreparedVersion): void {
    const before = this.#live;
    const { generation, changedServices, removedRoutes } = prepared;
    this.#serving.pipeline = this.#pipelineOf(generation);
    // Targets may have been deleted and recreated with another row.
    this.#recorder.forgetDeleted();
    this.#worker.bufferBudget.setLimit(generation.settings.limits.response_buffer_budget_bytes);
    this.#worker.requestBuffers.setLimit(generation.settings.limits.request_buffer_disk_bytes);
    this.#worker.aborted.setLimits(generation.settings.limits);
    this.#destinations.permit(generation.settings);
    this.#options.board.set(this.#options.worker, "revision", generation.revision);
    this.#deferredLogs.flush();
    if (before !== null && before.plugins !== generation.plugins)
      void this.#plugins.retire(before.plugins.all.values(), generation.plugins);
    this.#worker.geo.configure(generation.settings.geoip);
    this.#listeners.activate(generation, prepared.opened);
    this.#streams.activate(generation, prepared.openedPorts);
    this.#udp.activate(generation, prepared.openedUdp);
    if (changedServices.size > 0) {
      const ofServices = (of: Generation | null) =>
        [...changedServices].flatMap((id) => of?.services.get(id) ?? []);
      this.#pools.retire(ofServices(before), ofServices(generation));
      this.#checks.update(generation.services);
    }
    if (removedRoutes.size + changedServices.size > 0) this.#closeOrphans(prepared);
  }

  get #live(): Generation | null {
    return this.#serving.pipeline?.generation ?? null;
  }

  #pipelineOf(generation: Generation): Pipeline {
    const serving = { generation, worker: this.#worker };
    const host = { ...serving, deferredLogs: this.#deferredLogs, forward };
    return { ...serving, pluginHost: new PluginHost(host) };
  }

  /** A WebSocket outlives every change except the removal of its route, service or target. */
  #closeOrphans({ generation, removedRoutes }: PreparedVersion): void {
    this.#webSockets.closeWhere(({ routeId, serviceId, targetId }) => {
      const targets = generation.services.get(serviceId)?.targets ?? [];
      return removedRoutes.has(routeId) || !targets.some((target) => target.id === targetId);
    });
  }

  discard(revision: number): void {
    const candidate = this.#candidate;
    if (candidate?.revision !== revision) return;
    this.#candidate = null;
    candidate.intents.discard();
  }

  answer(question: WorkerQuestion): WorkerAnswer {
    if (question.kind === "explain")
      return (
        this.#live &&
        explain(this.#live, question.request, {
          worker: this.#worker,
          engineOf: (plan) => this.#listeners.engineOf(plan),
        })
      );
    if (question.kind === "challenges") {
      this.#worker.challenges.replace(question.challenges);
      this.#listeners.reconcile();
      return true;
    }
    if (question.kind === "flush") {
      this.#recorder.flush();
      return true;
    }
    if (question.kind === "end") {
      this.#open.end(question.paths);
      return true;
    }
    if (question.kind === "connections") return this.#open.ofStreamRoute(question.streamRouteId);
    if (question.kind === "upgrades") return this.#open.ofRoute(question.routeId);
    return this.#open.kill(question.connectionId);
  }

  useKeys({ stickyKey, pluginKey }: WorkerKeys): void {
    this.#stickyKey = stickyKey;
    this.#plugins.useKey(pluginKey);
  }

  useManagement(addresses: readonly ListenAddress[]): void {
    this.#destinations.useManagement(addresses);
  }

  relieve(): void {
    const { overload } = this.#worker;
    this.#listeners.pauseWhile(overload.isShortOfDescriptors);
    overload.relieve(performance.now());
  }

  stopAccepting(lingerMs: number): Promise<void> {
    this.#stopped ??= this.#stopAccepting(lingerMs);
    return this.#stopped;
  }

  async #stopAccepting(lingerMs: number): Promise<void> {
    this.#checks.stop();
    if (lingerMs > 0) {
      this.#serving.isHandingOver = true;
      await Bun.sleep(lingerMs);
      // The kernel distributes datagrams over all sockets of a port: while ours is open, some never reach the other process.
      await this.#udp.drain(0);
    }
    this.#listeners.stopAccepting();
    this.#streams.stopAccepting();
    this.#udp.stopAccepting();
  }

  async drain({ timeoutMs, lingerMs }: Drain): Promise<number> {
    await this.stopAccepting(lingerMs);
    const deadline = performance.now() + timeoutMs;
    // With another process in place connected clients may stay.
    const waitsForWebSockets = lingerMs > 0;
    if (waitsForWebSockets) await this.#webSockets.ended(timeoutMs);
    clearInterval(this.#sweeper);
    this.#webSockets.goAway();
    const rest = waitsForWebSockets ? WEBSOCKET_CLOSE_MS : 0;
    await this.#worker.inFlight.drained(Math.max(rest, deadline - performance.now()));
    const cut = await this.#webSockets.drained(Math.max(rest, deadline - performance.now()));
    const left = Math.max(0, deadline - performance.now());
    const cutStreams = await Promise.all([this.#streams.drain(left), this.#udp.drain(left)]);
    const aborted = this.#worker.inFlight.size + cut + cutStreams[0] + cutStreams[1];
    this.#worker.inFlight.stop();
    await this.#listeners.close();
    this.#deferredLogs.flush();
    const closed = this.#plugins.retire(this.#live?.plugins.all.values() ?? [], PluginSet.empty);
    await Promise.race([closed, Bun.sleep(PLUGIN_CLOSE_MS)]);
    return aborted;
  }

  #sweep(): void {
    this.#listeners.reconcile();
    this.#pools.sweep(performance.now());
    this.#worker.aborted.sweep();
    const { board, worker } = this.#options;
    board.set(worker, "active_requests", this.#worker.inFlight.size);
    const { http1, http2, streams } = this.#listeners.clients;
    board.set(worker, "http1_connections", http1);
    board.set(worker, "http2_connections", http2);
    board.set(worker, "http2_streams", streams);
    const used = this.#uses.take(performance.now());
    if (used.length > 0) this.#options.used?.(used);
  }
}

function createPluginLoader(
  options: DataPlaneOptions,
  parts: Pick<PluginLoaderOptions, "used" | "dropped" | "dialer" | "callout">,
): PluginLoader {
  const { worker, workers = 1, plugins, pluginKey, counters, log } = options;
  const table = counters ?? CounterTable.create({ keys: 1024, workers: worker + 1 });
  return new PluginLoader({
    worker,
    workers,
    thread: options.thread ?? worker + 1,
    plugins,
    pluginKey,
    maxCreateMs: options.maxCreateMs ?? null,
    sharedCounters: options.sharedCounters ?? null,
    logDirectories: options.logDirectories ?? null,
    log,
    running: options.board.cell(worker, "running_plugin"),
    ...parts,
    countersOf: (id, persist) => table.forInstance(worker, id, { persist }),
  });
}
