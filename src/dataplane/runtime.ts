// The data plane of one worker: holds the version that is served, prepares the next, swaps; knows no thread and no database.
import type { Issue } from "../model/error.ts";
import type { Drain, WorkerAnswer, WorkerQuestion } from "../snapshot/message.ts";
import { Pace } from "../pace.ts";
import type { SnapshotChange, SnapshotPiece } from "../snapshot/snapshot.ts";
import { AbortedRequests } from "./aborted-requests.ts";
import { Candidate, type PreparedVersion } from "./candidate.ts";
import { OpenChallenges } from "./challenges.ts";
import { CollectBudget } from "./collecting.ts";
import type { DataPlane, DataPlaneOptions } from "./data-plane.ts";
import { errorResponse } from "./error-page.ts";
import { ActiveChecks } from "./health/active-check.ts";
import { explain } from "./explain.ts";
import { failures, type ProxyError } from "./error.ts";
import { logFailure } from "./failure-log.ts";
import type { Generation } from "./generation.ts";
import { type Answer, handle } from "./handler.ts";
import { InFlight } from "./in-flight.ts";
import { ConnectionLimits } from "./listener/connection-limits.ts";
import type { RequestHandler } from "./listener/http-listener.ts";
import { Listeners } from "./listener/listeners.ts";
import { RefusalLog } from "./listener/refusal-log.ts";
import { createCallout } from "./plugin/callout.ts";
import { CredentialUses } from "./plugin/credential-uses.ts";
import { createGeo } from "./plugin/geo.ts";
import { PluginLoader, type PluginLoaderOptions } from "./plugin/plugin-loader.ts";
import { purge } from "./plugin/purge.ts";
import { PluginSet } from "./plugin/plugin-set.ts";
import { streamScene } from "./plugin/stream-visit.ts";
import { loopToken } from "./upstream/request-writer.ts";
import { CounterTable } from "../shared-memory/counter-table.ts";
import type { RequestContext } from "./request-context.ts";
import { EndedRequests } from "./plugin/ended-requests.ts";
import { NameResolver } from "./names/name-resolver.ts";
import { Overload } from "./overload.ts";
import { ReadyRoutes } from "./route-index.ts";
import { PoolRegistry } from "./service-runtime.ts";
import { Streams, type StreamsOptions } from "./stream/streams.ts";
import { UdpStreams } from "./stream/udp-streams.ts";
import { createWebSocketProxy } from "./upstream/websocket.ts";
import { TrafficRecorder } from "./traffic-recorder.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** How long the end waits for plugins that still have something to send; the supervisor waits for a second. */
const PLUGIN_CLOSE_MS = 800;

/** For WebSockets that were told to end after a long wait. */
const GOODBYE_MS = 1000;

export function createDataPlane(options: DataPlaneOptions): DataPlane {
  return new Runtime(options);
}

class Runtime implements DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #scope: WorkerScope;
  readonly #recorder: TrafficRecorder;
  readonly #pools: PoolRegistry;
  readonly #checks: ActiveChecks;
  readonly #webSockets: ReturnType<typeof createWebSocketProxy>;
  readonly #streams: Streams;
  readonly #udp: UdpStreams;
  readonly #listeners: Listeners;
  readonly #sweeper: Timer;
  readonly #plugins: PluginLoader;
  readonly #uses = new CredentialUses(performance.now());
  readonly #endedRequests = new EndedRequests();
  readonly #readyRoutes = new ReadyRoutes();
  readonly #pace: Pace;
  #live: Generation | null = null;
  #candidate: Candidate | null = null;
  /** Another process listens at the same ports: clients are to go there. */
  #isLeaving = false;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
    this.#pace = options.pace ?? new Pace();
    const inFlight = new InFlight();
    this.#recorder = options.recorder ?? TrafficRecorder.unread();
    this.#pools = new PoolRegistry(inFlight.now, {
      resolver: new NameResolver({ servers: options.dnsServers }),
      now: () => performance.now(),
      log: options.log,
    });
    this.#checks = new ActiveChecks({ board: options.targets, worker: options.worker });
    this.#webSockets = createWebSocketProxy({
      inFlight,
      onCount: (open) => options.board.set(options.worker, "open_websockets", open),
      report: (context, error) => this.#report(context, error),
      ended: (context, status) => this.#scope.ended(context, status),
      times: options.webSocketTimes,
    });
    this.#scope = {
      inFlight,
      collectBudget: new CollectBudget(0),
      overload: new Overload(options),
      challenges: new OpenChallenges(options.wanted ?? (() => {})),
      aborted: new AbortedRequests((client) =>
        options.log("warn", "a client breaks off too many requests and is refused for a while", {
          client,
        }),
      ),
      proxyWebSocket: this.#webSockets.proxy,
      report: (context, error) => this.#report(context, error),
      reportUnread: (id, error) => {
        this.#recorder.unread(error.status);
        logFailure(options.log, error, { request_id: id });
      },
      ended: (context, status) => this.#ended(context, status),
      // All workers read the same files: one says what is wrong with them.
      geo: createGeo(options.worker === 0 ? options.log : () => {}),
      pluginFailed: (context, plan, error) =>
        options.log("warn", "a plugin failed", {
          request_id: context.id,
          plugin: plan.name,
          instance: plan.label ?? plan.id,
          error: error instanceof Error ? error.message : String(error),
        }),
      decided: (plugin, decision) => this.#recorder.decided(plugin, decision),
    };
    this.#plugins = createPluginLoader(options, {
      used: (id) => this.#uses.note(id),
      dropped: (plugin, count) => this.#recorder.dropped(plugin, count),
    });
    const streamOptions = this.#streamOptions();
    this.#streams = new Streams(streamOptions);
    this.#udp = new UdpStreams(streamOptions);
    const refusals = new RefusalLog((fields) => options.log("warn", "connections refused", fields));
    this.#listeners = new Listeners({
      answerOn: (id) => this.#answerOn(id),
      websocket: this.#webSockets.handler,
      limits: new ConnectionLimits(options.targets, options.worker),
      adopt: (key, arrival) => this.#streams.adopt(key, arrival),
      refused: (listener, reason, client) => refusals.refused(listener, reason, client),
      shaken: (id, isDone) => this.#recorder.handshake(id, isDone),
      challenges: this.#scope.challenges,
      failed: (issue) => options.log("error", "a listener could not change", { ...issue }),
    });
    this.#sweeper = setInterval(() => this.#sweep(), 1000);
  }

  #streamOptions(): StreamsOptions {
    const { worker, targets: board, log } = this.#options;
    const { overload } = this.#scope;
    return {
      ...{ worker, board, recorder: this.#recorder },
      refused(reason, fields) {
        // The log has said once why nothing new may begin.
        if (!overload.isShedding) log("warn", "stream refused", { reason, ...fields });
      },
      isShedding: () => overload.isShedding,
      plugins: streamScene(this.#scope, log),
    };
  }

  async take(revision: number, piece: SnapshotPiece): Promise<void> {
    this.#pace.begin();
    await this.#candidateFor(revision).take(piece);
  }

  async prepare(change: SnapshotChange): Promise<readonly Issue[]> {
    this.#pace.begin();
    const candidate = this.#candidateFor(change.revision);
    const issues = await candidate.prepare(change);
    if (issues.length > 0) this.discard(change.revision);
    return issues;
  }

  /** The candidate that is being put together, or a new one when there is none for the revision. */
  #candidateFor(revision: number): Candidate {
    const known = this.#candidate;
    if (known?.revision === revision && known.prepared === null) return known;
    if (known !== null) this.discard(known.revision);
    const { worker, instanceId, targets: board, stickyKey } = this.#options;
    this.#candidate = new Candidate(revision, {
      ...{ worker, instanceId, board, stickyKey },
      live: this.#live,
      pace: this.#pace,
      pools: this.#pools,
      ready: this.#readyRoutes,
      plugins: this.#plugins,
      listeners: this.#listeners,
      streams: this.#streams,
      udp: this.#udp,
      geo: this.#scope.geo,
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

  /** Swaps the versions in one step; what is gone drains. */
  #serve(prepared: PreparedVersion): void {
    const before = this.#live;
    const { generation, changedServices, removedRoutes } = prepared;
    this.#live = generation;
    // Targets may have gone, and come again under another row.
    this.#recorder.forgetTargets();
    this.#scope.collectBudget.setLimit(generation.settings.limits.collect_budget_bytes);
    this.#options.board.set(this.#options.worker, "revision", generation.revision);
    this.#endedRequests.flush();
    if (before !== null && before.plugins !== generation.plugins)
      void this.#plugins.retire(before.plugins.all.values(), generation.plugins);
    this.#scope.geo.configure(generation.settings.geoip);
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

  /** A WebSocket goes on through every change but one that takes its route, service or target away. */
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
      return this.#live && explain(this.#live, question.request, this.#scope.geo);
    if (question.kind === "challenges") {
      this.#scope.challenges.replace(question.challenges);
      this.#listeners.reconcile();
      return true;
    }
    if (question.kind === "purge")
      return this.#live === null ? 0 : purge(this.#live.plugins, question);
    if (question.kind === "flush") {
      this.#recorder.flush();
      return true;
    }
    return question.kind === "connections"
      ? [...this.#streams.list(question.streamRouteId), ...this.#udp.list(question.streamRouteId)]
      : this.#streams.kill(question.connectionId) || this.#udp.kill(question.connectionId);
  }

  relieve(): void {
    const { overload } = this.#scope;
    this.#listeners.pauseWhile(overload.isShortOfDescriptors);
    overload.relieve(performance.now());
  }

  async drain({ timeoutMs, lingerMs }: Drain): Promise<number> {
    this.#checks.stop();
    if (lingerMs > 0) {
      this.#isLeaving = true;
      await Bun.sleep(lingerMs);
      // The system shares datagrams out among all sockets of a port: as long as ours is there, some never reach the other process.
      await this.#udp.drain(0);
    }
    this.#listeners.stopAccepting();
    this.#streams.stopAccepting();
    this.#udp.stopAccepting();
    const deadline = performance.now() + timeoutMs;
    // With another process in its place nobody waits for this one: whoever is connected may stay.
    const waitsForWebSockets = lingerMs > 0;
    if (waitsForWebSockets) await this.#webSockets.ended(timeoutMs);
    clearInterval(this.#sweeper);
    this.#webSockets.goAway();
    const rest = waitsForWebSockets ? GOODBYE_MS : 0;
    await this.#scope.inFlight.drained(Math.max(rest, deadline - performance.now()));
    const cut = await this.#webSockets.drained(Math.max(rest, deadline - performance.now()));
    const left = Math.max(0, deadline - performance.now());
    const cutStreams = await Promise.all([this.#streams.drain(left), this.#udp.drain(left)]);
    const aborted = this.#scope.inFlight.size + cut + cutStreams[0] + cutStreams[1];
    await this.#listeners.close();
    this.#endedRequests.flush();
    const closed = this.#plugins.retire(this.#live?.plugins.all.values() ?? [], PluginSet.empty);
    await Promise.race([closed, Bun.sleep(PLUGIN_CLOSE_MS)]);
    return aborted;
  }

  #answerOn(listenerId: string): RequestHandler {
    const scope = this.#scope;
    return (request, server, connection) => {
      const generation = this.#live;
      const listener = generation?.listenerFacts.get(listenerId);
      // Bound while being prepared: until it is activated nothing is served through it.
      if (generation === null || listener === undefined) return notServing(request);
      try {
        const answer = handle({ request, server, listener, connection }, { generation, scope });
        return this.#isLeaving ? sendElsewhere(answer) : answer;
      } catch (error) {
        // A bug of ours must not show Bun's page, and the worker goes on.
        const failure = failures.internal(error);
        scope.reportUnread(Bun.randomUUIDv7(), failure);
        return errorResponse(subjectOf(request), failure);
      }
    };
  }

  /** Every request ends here, once. */
  #ended(context: RequestContext, status: number): void {
    this.#options.board.add(this.#options.worker, "requests_total", 1);
    const now = performance.now();
    this.#recorder.ended(context, status, now);
    this.#scope.overload.leave(context);
    this.#endedRequests.ended(context, status, now);
  }

  #report(context: RequestContext, error: ProxyError): void {
    logFailure(this.#options.log, error, {
      request_id: context.id,
      client: context.clientAddress(),
      method: context.method,
      host: context.host,
      path: context.path,
    });
  }

  #sweep(): void {
    this.#listeners.reconcile();
    this.#pools.sweep(performance.now());
    this.#options.board.set(this.#options.worker, "active_requests", this.#scope.inFlight.size);
    const used = this.#uses.take(performance.now());
    if (used.length > 0) this.#options.used?.(used);
  }
}

function createPluginLoader(
  options: DataPlaneOptions,
  told: Pick<PluginLoaderOptions, "used" | "dropped">,
): PluginLoader {
  const { worker, workers = 1, plugins, pluginKey, counters, log, instanceId } = options;
  const table = counters ?? CounterTable.create({ keys: 1024, workers: worker + 1 });
  return new PluginLoader({
    worker,
    workers,
    plugins,
    pluginKey,
    logPlaces: options.logPlaces ?? null,
    log,
    ...told,
    countersOf: (id, persist) => table.forInstance(worker, id, { persist }),
    callout: createCallout({ loopToken: loopToken(instanceId) }),
  });
}

/** RFC 9112 section 9.6: the client opens another connection for its next request. */
function sendElsewhere(answer: Answer): Answer {
  if (answer instanceof Promise) return answer.then(closing);
  return closing(answer);
}

function closing(response: Response | undefined): Response | undefined {
  response?.headers.set("connection", "close");
  return response;
}

function notServing(request: Request): Response {
  return errorResponse(subjectOf(request), failures.starting);
}

function subjectOf(request: Request) {
  return {
    id: Bun.randomUUIDv7(),
    method: request.method,
    header: (name: string) => request.headers.get(name),
  };
}
