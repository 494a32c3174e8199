// The data plane of one worker: holds the version that is served, prepares the next, swaps; knows no thread and no database.
import type { Issue } from "../model/error.ts";
import type { WorkerAnswer, WorkerQuestion } from "../snapshot/message.ts";
import type { ListenerPlan, SnapshotChange } from "../snapshot/snapshot.ts";
import { AbortedRequests } from "./aborted-requests.ts";
import { CollectBudget } from "./collecting.ts";
import type { DataPlane, DataPlaneOptions } from "./data-plane.ts";
import { errorResponse } from "./error-page.ts";
import { ActiveChecks } from "./health/active-check.ts";
import { failures, type ProxyError } from "./error.ts";
import { explain } from "./explain.ts";
import { type Generation, nextGeneration } from "./generation.ts";
import { handle } from "./handler.ts";
import { InFlight } from "./in-flight.ts";
import {
  type HttpListener,
  openHttpListener,
  type RequestHandler,
} from "./listener/http-listener.ts";
import type { RequestContext } from "./request-context.ts";
import { NameResolver } from "./names/name-resolver.ts";
import { PoolRegistry } from "./service-runtime.ts";
import { discardPorts, type OpenedPorts, Streams } from "./stream/streams.ts";
import { discardUdpPorts, type OpenedUdpPorts, UdpStreams } from "./stream/udp-streams.ts";
import { createWebSocketProxy } from "./upstream/websocket.ts";
import type { WorkerScope } from "./worker-scope.ts";

interface Prepared {
  readonly generation: Generation;
  /** Bound for this version only. */
  readonly opened: Map<string, HttpListener>;
  readonly openedPorts: OpenedPorts;
  readonly openedUdp: OpenedUdpPorts;
  readonly removedRoutes: readonly string[];
}

export function createDataPlane(options: DataPlaneOptions): DataPlane {
  return new Runtime(options);
}

class Runtime implements DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #scope: WorkerScope;
  readonly #pools: PoolRegistry;
  readonly #checks: ActiveChecks;
  readonly #webSockets: ReturnType<typeof createWebSocketProxy>;
  readonly #streams: Streams;
  readonly #udp: UdpStreams;
  readonly #listeners = new Map<string, HttpListener>();
  /** Listeners that no longer accept and wait for their last request. */
  readonly #closing = new Set<HttpListener>();
  readonly #sweeper: Timer;
  #live: Generation | null = null;
  #prepared: Prepared | null = null;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
    const inFlight = new InFlight();
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
      ended: (context) => this.#scope.ended(context),
      times: options.webSocketTimes,
    });
    this.#scope = {
      inFlight,
      collectBudget: new CollectBudget(0),
      aborted: new AbortedRequests((client) =>
        options.log("warn", "a client breaks off too many requests and is refused for a while", {
          client,
        }),
      ),
      proxyWebSocket: this.#webSockets.proxy,
      report: (context, error) => this.#report(context, error),
      reportUnread: (id, error) => this.#logFailure({ request_id: id }, error),
      ended: () => options.board.add(options.worker, "requests_total", 1),
    };
    const streamOptions = {
      worker: options.worker,
      board: options.targets,
      refused: (reason: string, fields: object) =>
        options.log("warn", "stream refused", { reason, ...fields }),
    };
    this.#streams = new Streams(streamOptions);
    this.#udp = new UdpStreams(streamOptions);
    this.#sweeper = setInterval(() => this.#sweep(), 1000);
  }

  async prepare(change: SnapshotChange): Promise<readonly Issue[]> {
    if (this.#prepared !== null) this.discard(this.#prepared.generation.revision);
    const { worker, instanceId, targets: board, stickyKey } = this.#options;
    const generation = nextGeneration(this.#live, change, {
      worker,
      instanceId,
      pools: this.#pools,
      board,
      stickyKey,
    });
    const opened = new Map<string, HttpListener>();
    const issues: Issue[] = [];
    for (const plan of generation.listeners.values()) {
      if (!this.#mustBind(plan, generation)) continue;
      try {
        const listener = openHttpListener(plan, {
          answer: this.#answerOn(plan.id),
          websocket: this.#webSockets.handler,
          certificates: generation.certificates,
        });
        opened.set(plan.id, listener);
      } catch (error) {
        issues.push(bindIssue(plan, error));
      }
    }
    const streams = this.#streams.prepare(generation);
    const udp = await this.#udp.prepare(generation);
    issues.push(...streams.issues, ...udp.issues);
    if (issues.length > 0) {
      discardPorts(streams.opened);
      discardUdpPorts(udp.opened);
      await closeAll(opened.values());
    } else {
      const [openedPorts, openedUdp] = [streams.opened, udp.opened];
      const removedRoutes = change.routes.removals;
      this.#prepared = { generation, opened, openedPorts, openedUdp, removedRoutes };
    }
    return issues;
  }

  /** A listener is bound anew only when what Bun.serve was given has changed; everything else is read at each request. */
  #mustBind(plan: ListenerPlan, { certificates }: Generation): boolean {
    const bound = this.#listeners.get(plan.id)?.plan;
    if (bound === undefined) return true;
    if (plan.tls !== null && this.#live?.certificates !== certificates) return true;
    if (bound === plan) return false;
    return JSON.stringify(bindKey(bound)) !== JSON.stringify(bindKey(plan));
  }

  activate(revision: number): void {
    const prepared = this.#prepared;
    if (prepared?.generation.revision !== revision)
      throw new Error(`revision ${revision} was not prepared`);
    this.#prepared = null;
    const before = this.#live;
    const { generation } = prepared;
    this.#live = generation;
    this.#scope.collectBudget.setLimit(generation.settings.limits.collect_budget_bytes);
    this.#options.board.set(this.#options.worker, "revision", revision);
    for (const [id, listener] of prepared.opened) {
      this.#retireListener(id);
      this.#listeners.set(id, listener);
    }
    for (const id of [...this.#listeners.keys()])
      if (!generation.listeners.has(id)) this.#retireListener(id);
    this.#streams.activate(generation, prepared.openedPorts);
    this.#udp.activate(generation, prepared.openedUdp);
    if (before !== null && before.services !== generation.services)
      this.#retireServices(before, generation);
    if (before?.services !== generation.services) this.#checks.update(generation.services);
    if (prepared.removedRoutes.length > 0 || before?.services !== generation.services)
      this.#closeOrphans(prepared);
  }

  /** A WebSocket goes on through every change but one that takes its route, service or target away. */
  #closeOrphans({ generation, removedRoutes }: Prepared): void {
    const removed = new Set(removedRoutes);
    this.#webSockets.closeWhere(({ routeId, serviceId, targetId }) => {
      const targets = generation.services.get(serviceId)?.targets ?? [];
      return removed.has(routeId) || !targets.some((target) => target.id === targetId);
    });
  }

  #retireServices(before: Generation, after: Generation): void {
    for (const [id, service] of before.services) {
      const next = after.services.get(id) ?? null;
      if (next !== service) this.#pools.retire(service, next);
    }
  }

  #retireListener(id: string): void {
    const listener = this.#listeners.get(id);
    if (listener === undefined) return;
    this.#listeners.delete(id);
    this.#closing.add(listener);
    void listener.stop().finally(() => this.#closing.delete(listener));
  }

  discard(revision: number): void {
    const prepared = this.#prepared;
    if (prepared === null || prepared.generation.revision !== revision) return;
    this.#prepared = null;
    discardPorts(prepared.openedPorts);
    discardUdpPorts(prepared.openedUdp);
    void closeAll(prepared.opened.values());
    // Pools that only the discarded version had.
    for (const [id, service] of prepared.generation.services) {
      const live = this.#live?.services.get(id) ?? null;
      if (live !== service) this.#pools.retire(service, live);
    }
  }

  answer(question: WorkerQuestion): WorkerAnswer {
    if (question.kind === "explain") return this.#live && explain(this.#live, question.request);
    return question.kind === "connections"
      ? [...this.#streams.list(question.streamRouteId), ...this.#udp.list(question.streamRouteId)]
      : this.#streams.kill(question.connectionId) || this.#udp.kill(question.connectionId);
  }

  async drain(timeoutMs: number): Promise<number> {
    clearInterval(this.#sweeper);
    this.#checks.stop();
    for (const id of [...this.#listeners.keys()]) this.#retireListener(id);
    this.#streams.stopAccepting();
    this.#udp.stopAccepting();
    this.#webSockets.goAway();
    const deadline = performance.now() + timeoutMs;
    await this.#scope.inFlight.drained(timeoutMs);
    const cut = await this.#webSockets.drained(Math.max(0, deadline - performance.now()));
    const left = Math.max(0, deadline - performance.now());
    const cutStreams = await Promise.all([this.#streams.drain(left), this.#udp.drain(left)]);
    const aborted = this.#scope.inFlight.size + cut + cutStreams[0] + cutStreams[1];
    await closeAll(this.#closing);
    return aborted;
  }

  #answerOn(listenerId: string): RequestHandler {
    const scope = this.#scope;
    return (request, server) => {
      const generation = this.#live;
      const listener = generation?.listenerFacts.get(listenerId);
      // Bound while being prepared: until it is activated nothing is served through it.
      if (generation === null || listener === undefined) return notServing(request);
      try {
        return handle(request, server, { generation, listener, scope });
      } catch (error) {
        // A bug of ours must not show Bun's page, and the worker goes on.
        const failure = failures.internal(error);
        scope.reportUnread(Bun.randomUUIDv7(), failure);
        return errorResponse(subjectOf(request), failure);
      }
    };
  }

  #report(context: RequestContext, error: ProxyError): void {
    this.#logFailure(
      {
        request_id: context.id,
        client: context.clientAddress(),
        method: context.method,
        host: context.host,
        path: context.path,
      },
      error,
    );
  }

  #logFailure(fields: Record<string, unknown>, error: ProxyError): void {
    // What clients do wrong is theirs; what targets and the gateway do wrong somebody should see.
    const level = error.source === "client" || error.status === 404 ? "debug" : "warn";
    const cause = error.cause instanceof Error ? { cause: error.cause.message } : {};
    this.#options.log(level, "request failed", {
      ...fields,
      status: error.status,
      error: error.token,
      reason: error.detail,
      ...cause,
    });
  }

  #sweep(): void {
    this.#pools.sweep(performance.now());
    this.#options.board.set(this.#options.worker, "active_requests", this.#scope.inFlight.size);
  }
}

function bindKey({ listener, tls }: ListenerPlan) {
  const { address, port, protocol, http2, http3, tls_min_version, idle_timeout } = listener;
  return [address, port, protocol, http2, http3, tls_min_version, idle_timeout, tls];
}

function bindIssue({ listener }: ListenerPlan, error: unknown): Issue {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    path: "port",
    message: `cannot listen on ${listener.address} port ${listener.port}: ${reason}`,
    status: 409,
  };
}

async function closeAll(listeners: Iterable<HttpListener>): Promise<void> {
  await Promise.all([...listeners].map((listener) => listener.close()));
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
