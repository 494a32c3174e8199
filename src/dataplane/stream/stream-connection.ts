// One TCP connection of a stream route: preread, target selection, piping, close; knows no listening port.
import { MAX_HELLO_BYTES, readClientHello } from "../../net/client-hello.ts";
import { type ProxiedEnds, readProxyHeader, writeProxyHeader } from "../../net/proxy-protocol.ts";
import type { StreamRefusal } from "../../pdk/context.ts";
import type { StreamInfo, StreamPluginContext } from "../plugin/stream-plugin-context.ts";
import type { FailureText } from "../../shared-memory/target-health.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import type { ClientSocket } from "../listener/client-socket.ts";
import { Pipe, type Side } from "./pipe.ts";
import { clientKey, routeOfName, type StreamRouteRuntime } from "./stream-runtime.ts";

/** What all stream connections of a worker share. */
export interface StreamWorkerServices {
  readonly now: () => number;
  /** Milliseconds in which a client must send its PROXY header and ClientHello. */
  prereadTimeout(): number;
  /** Routes at the port; several when they match by TLS server name. */
  routesAt(portKey: string): readonly StreamRouteRuntime[];
  serviceOf(route: StreamRouteRuntime): ServiceRuntime | null;
  /** Counts a connection; false when there are too many. */
  enter(route: StreamRouteRuntime): boolean;
  leave(route: StreamRouteRuntime): void;
  /** Runs the route's plugins; null: there are none. */
  pluginContext(
    info: Omit<StreamInfo, "streamRoute">,
    route: StreamRouteRuntime,
  ): StreamPluginContext | null;
  /** Opens a connection to a target and reports to the handlers. */
  dial(target: TargetRuntime, handlers: TargetHandlers): void;
  refused(reason: string, fields: Readonly<Record<string, unknown>>): void;
  closed(connection: StreamConnection): void;
}

/** Events of a connection to a target. `opened` or `failed` comes first, and once. */
export interface TargetHandlers {
  opened(socket: Side): void;
  failed(failure: FailureText): void;
  sent(chunk: Buffer): void;
  drained(): void;
  ended(): void;
  /** `isReset`: the connection broke instead of being closed. */
  closed(isReset: boolean): void;
}

/** Client bytes buffered until the target is connected. */
const MAX_BUFFERED_BYTES = 65_536;

type State = "preread" | "connecting" | "piping" | "closed";

export class StreamConnection implements TargetHandlers {
  readonly id: string;
  readonly startedAt = Date.now();
  readonly portKey: string;
  #closesGracefully = false;
  /** The reason of a refusal; null: not refused. */
  refusal: string | null = null;
  #state: State = "preread";
  #deadline: number;
  #buffered: Buffer[] = [];
  #bufferedBytes = 0;
  #ends: ProxiedEnds | null = null;
  #sawProxyHeader = false;
  #clientHasEnded = false;
  /** A side that has closed while its bytes still wait for the other side. */
  #isGone: "client" | "target" | null = null;
  #serverName: string | null;
  #pluginContext: StreamPluginContext | null = null;
  #route: StreamRouteRuntime | null = null;
  #service: ServiceRuntime | null = null;
  #target: TargetRuntime | null = null;
  #tried: Set<string> | null = null;
  #upstream: Side | null = null;
  #pipe: Pipe | null = null;
  readonly #socket: ClientSocket;
  readonly #worker: StreamWorkerServices;

  constructor(
    id: string,
    socket: ClientSocket,
    at: {
      readonly portKey: string;
      readonly worker: StreamWorkerServices;
      /** Both endpoints, when the PROXY header was read before. */
      readonly ends?: ProxiedEnds | null;
      /** The TLS server name, when it was read before. */
      readonly serverName?: string | null;
    },
  ) {
    this.id = id;
    this.#socket = socket;
    this.portKey = at.portKey;
    this.#ends = at.ends ?? null;
    this.#sawProxyHeader = this.#ends !== null;
    this.#serverName = at.serverName ?? null;
    this.#worker = at.worker;
    this.#deadline = at.worker.now() + at.worker.prereadTimeout();
  }

  get route(): StreamRouteRuntime | null {
    return this.#route;
  }

  get target(): TargetRuntime | null {
    return this.#target;
  }

  get client(): { readonly address: string; readonly port: number } {
    return (
      this.#ends?.source ?? { address: this.#socket.remoteAddress, port: this.#socket.remotePort }
    );
  }

  get bytesIn(): number {
    return this.#pipe?.bytesUp ?? this.#bufferedBytes;
  }

  get bytesOut(): number {
    return this.#pipe?.bytesDown ?? 0;
  }

  /** Connects at once when nothing of the client has to be read first. */
  begin(): void {
    this.#decide();
  }

  clientSent(chunk: Buffer): void {
    if (this.#pipe !== null) {
      this.#pipe.clientSent(chunk);
      return;
    }
    this.#buffered.push(chunk);
    this.#bufferedBytes += chunk.length;
    if (this.#state === "preread") this.#decide();
    else if (this.#bufferedBytes > MAX_BUFFERED_BYTES) this.#socket.pause();
  }

  clientDrained(): void {
    this.#pipe?.clientDrained();
    this.#closeIfOver();
  }

  clientEnded(): void {
    this.#clientHasEnded = true;
    if (this.#pipe !== null) {
      this.#pipe.clientEnded();
      this.#closeIfOver();
    } else if (this.#state === "preread") this.close();
  }

  /** `isReset`: the connection broke instead of being closed. */
  clientClosed(isReset: boolean): void {
    this.#isGone = isReset ? null : "client";
    if (this.#pipe === null || isReset) return this.close();
    // What the client sent before may still wait for the target.
    this.#pipe.clientEnded();
    this.#closeIfOver();
  }

  /** Reads what has arrived, and connects as soon as the route is known. */
  #decide(): void {
    const routes = this.#worker.routesAt(this.portKey);
    const [first] = routes;
    if (first === undefined) return this.#refuse("the port has no stream route any more");
    if (first.route.proxy_protocol_in && !this.#sawProxyHeader && !this.#readProxyHeader(first))
      return;
    const route = this.#routeFor(routes);
    if (route === "unknown") return;
    if (route === null) return this.#refuse("no stream route matches the TLS server name");
    if (!route.admits(this.client.address)) return this.#refuse("the address may not connect");
    const service = this.#worker.serviceOf(route);
    if (service === null) return this.#refuse("the service does not exist");
    if (!this.#worker.enter(route)) return this.#refuse("too many connections");
    this.#route = route;
    this.#service = service;
    const refusal = this.#runPlugins(route, service);
    if (refusal !== null) return this.#refuse(refusal.reason, refusal.reset === false);
    this.#connect();
  }

  #runPlugins(route: StreamRouteRuntime, { id, service }: ServiceRuntime): StreamRefusal | null {
    const info = {
      id: this.id,
      protocol: "tcp",
      client: this.client,
      serverName: this.#serverName,
      service: { id, name: service.name },
    } as const;
    this.#pluginContext = this.#worker.pluginContext(info, route);
    return this.#pluginContext?.connect() ?? null;
  }

  /** False: not yet, or refused. */
  #readProxyHeader({ trusts }: StreamRouteRuntime): boolean {
    if (!trusts(this.#socket.remoteAddress)) {
      this.#refuse("PROXY headers from this address are not trusted");
      return false;
    }
    const bytes = this.#joined();
    const header = readProxyHeader(bytes);
    if (header.kind === "invalid") this.#refuse(header.reason);
    if (header.kind !== "header") return false;
    this.#sawProxyHeader = true;
    this.#ends = header.ends;
    this.#buffered = [bytes.subarray(header.bytes)];
    this.#bufferedBytes -= header.bytes;
    return true;
  }

  #routeFor(routes: readonly StreamRouteRuntime[]): StreamRouteRuntime | null | "unknown" {
    const [first] = routes;
    const isByName = routes.length > 1 || (first?.route.sni.length ?? 0) > 0;
    if (!isByName || first?.route.tls_mode === "terminate") return first ?? null;
    const hello = readClientHello(this.#joined());
    if (hello === "incomplete" && this.#bufferedBytes <= MAX_HELLO_BYTES * 2) return "unknown";
    if (typeof hello === "string") {
      this.#refuse("the connection does not begin with a TLS ClientHello");
      return "unknown";
    }
    this.#serverName = hello.serverName;
    return routeOfName(routes, hello.serverName);
  }

  #joined(): Buffer {
    if (this.#buffered.length !== 1) this.#buffered = [Buffer.concat(this.#buffered)];
    return this.#buffered[0] as Buffer;
  }

  #connect(): void {
    const target = this.#nextTarget();
    if (target === null) return this.#refuse("no target is available");
    this.#connectTo(target);
  }

  /** Selects a target and counts the connection there; another worker may have filled it since the selection. */
  #nextTarget(): TargetRuntime | null {
    const service = this.#service as ServiceRuntime;
    const { group } = service;
    const key = clientKey(service, this.client.address);
    for (;;) {
      const target = group.pick({ key, tried: this.#tried });
      if (target === null || group.enter(target)) return target;
      this.#tried ??= new Set();
      this.#tried.add(target.id);
    }
  }

  #connectTo(target: TargetRuntime): void {
    const timeout = this.#route?.route.connect_timeout ?? 0;
    this.#state = "connecting";
    this.#target = target;
    this.#deadline = this.#worker.now() + (timeout || Number.POSITIVE_INFINITY);
    this.#worker.dial(target, this);
  }

  // Events of the target's connection.

  opened(socket: Side): void {
    if (this.#state !== "connecting") {
      socket.terminate();
      return;
    }
    this.#state = "piping";
    this.#upstream = socket;
    this.#service?.group.passive.responded(this.#target?.row ?? 0, 0);
    const pipe = new Pipe(this.#socket, socket, this.#worker.now());
    this.#pipe = pipe;
    const header = this.#outgoingHeader();
    if (header !== null) socket.write(header);
    const buffered = this.#buffered;
    this.#buffered = [];
    this.#socket.resume();
    for (const chunk of buffered) if (chunk.length > 0) pipe.clientSent(chunk);
    if (this.#clientHasEnded) pipe.clientEnded();
  }

  #outgoingHeader(): Buffer | null {
    const version = this.#route?.route.proxy_protocol_out ?? "off";
    if (version === "off") return null;
    const { localPort } = this.#socket;
    const address = (this.#socket as { readonly localAddress?: string }).localAddress ?? "0.0.0.0";
    const destination = this.#ends?.destination ?? { address, port: localPort };
    return writeProxyHeader(version, { source: this.client, destination });
  }

  failed(failure: FailureText): void {
    if (this.#state !== "connecting") return;
    const { group, service } = this.#service as ServiceRuntime;
    const target = this.#target as TargetRuntime;
    group.passive.failed(target.row, failure);
    group.leave(target);
    this.#target = null;
    this.#tried ??= new Set();
    this.#tried.add(target.id);
    const mayRetry =
      service.retries.on.includes("connect") && this.#tried.size <= service.retries.count;
    const next = mayRetry ? this.#nextTarget() : null;
    if (next === null) this.#refuse(failure);
    else this.#connectTo(next);
  }

  sent(chunk: Buffer): void {
    this.#pipe?.targetSent(chunk);
  }

  drained(): void {
    this.#pipe?.targetDrained();
    this.#closeIfOver();
  }

  ended(): void {
    this.#pipe?.targetEnded();
    this.#closeIfOver();
  }

  closed(isReset: boolean): void {
    this.#isGone = isReset ? null : "target";
    if (this.#pipe === null || isReset) return this.close();
    // What the target sent before may still wait for the client.
    this.#pipe.targetEnded();
    this.#closeIfOver();
  }

  #closeIfOver(): void {
    const pipe = this.#pipe;
    if (pipe === null) return;
    const isFlushed =
      (this.#isGone === "target" && pipe.heldDown === 0) ||
      (this.#isGone === "client" && pipe.heldUp === 0);
    if (pipe.isOver || isFlushed) this.close();
  }

  /** Called about once a second. */
  tick(now: number): void {
    if (this.#state === "piping") {
      const seconds = this.#route?.route.idle_timeout ?? 0;
      if (seconds > 0 && (this.#pipe?.idleFor(now) ?? 0) >= seconds * 1000) this.close();
    } else if (now >= this.#deadline) {
      if (this.#state === "connecting")
        this.failed("the target did not accept the connection in time");
      else this.#refuse("no complete PROXY header or TLS ClientHello arrived in time");
    }
  }

  #refuse(reason: string, isGraceful = false): void {
    if (this.#state === "closed") return;
    this.refusal = reason;
    this.#closesGracefully = isGraceful;
    this.#worker.refused(reason, {
      client: this.client.address,
      route: this.#route?.route.name ?? null,
      target: this.#target?.id ?? null,
    });
    this.close();
  }

  /** Closes both sides now; after a regular end the kernel still sends what it holds. */
  close(): void {
    if (this.#state === "closed") return;
    const isRegular =
      this.#pipe?.isOver === true || this.#isGone !== null || this.#closesGracefully;
    this.#state = "closed";
    this.#buffered = [];
    if (this.#target !== null) this.#service?.group.leave(this.#target);
    if (this.#route !== null) this.#worker.leave(this.#route);
    if (isRegular) {
      closeAfterWrites(this.#socket);
      if (this.#upstream !== null) closeAfterWrites(this.#upstream);
    } else {
      this.#socket.terminate();
      this.#upstream?.terminate();
    }
    this.#pluginContext?.end({
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      durationMs: Date.now() - this.startedAt,
      targetId: this.#target?.id ?? null,
      refusal: this.refusal,
    });
    this.#worker.closed(this);
  }
}

/** Not `end`, after which a socket with TLS cannot be closed until its peer leaves. */
function closeAfterWrites(socket: Side): void {
  socket.shutdown();
  socket.close();
}
