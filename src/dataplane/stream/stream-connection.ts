// One client of a stream route, from its first byte to the last: who it is, where it leads, the bytes between; knows no port.
import type { Socket } from "bun";
import { MAX_HELLO_BYTES, readClientHello } from "../../net/client-hello.ts";
import { type ProxiedEnds, readProxyHeader, writeProxyHeader } from "../../net/proxy-protocol.ts";
import type { StreamRefusal } from "../../pdk/context.ts";
import type { StreamFacts, StreamVisit } from "../plugin/stream-visit.ts";
import type { FailureText } from "../../shared-memory/target-health.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import { Pipe, type Side } from "./pipe.ts";
import { clientKey, routeOfName, type StreamRouteRuntime } from "./stream-runtime.ts";

/** The client's socket. */
export type ClientSocket = Side &
  Pick<Socket<unknown>, "remoteAddress" | "remotePort" | "localPort" | "end">;

/** What connections of one worker share. */
export interface StreamScope {
  readonly now: () => number;
  /** Milliseconds in which a client must send what decides where it goes. */
  prereadTimeout(): number;
  /** Routes at the port; several when TLS names keep them apart. */
  routesAt(portKey: string): readonly StreamRouteRuntime[];
  serviceOf(route: StreamRouteRuntime): ServiceRuntime | null;
  /** Counts a connection in; false when there are too many. */
  enter(route: StreamRouteRuntime): boolean;
  leave(route: StreamRouteRuntime): void;
  /** The plugins that want to see it; null: none. */
  visit(facts: Omit<StreamFacts, "streamRoute">, route: StreamRouteRuntime): StreamVisit | null;
  /** Opens a connection to a target; the handlers hear the outcome. */
  dial(target: TargetRuntime, handlers: TargetHandlers): void;
  refused(reason: string, fields: Readonly<Record<string, unknown>>): void;
  closed(connection: StreamConnection): void;
}

/** What a connection to a target tells. `opened` or `failed` comes first, and once. */
export interface TargetHandlers {
  opened(socket: Side): void;
  failed(failure: FailureText): void;
  sent(chunk: Buffer): void;
  drained(): void;
  ended(): void;
  /** `isReset`: it broke instead of being closed. */
  closed(isReset: boolean): void;
}

/** Bytes of a client that may wait until its target is there. */
const MAX_BUFFERED_BYTES = 65_536;

type State = "peeking" | "connecting" | "piping" | "closed";

export class StreamConnection implements TargetHandlers {
  readonly id: string;
  readonly startedAt = Date.now();
  readonly portKey: string;
  #endsOrderly = false;
  /** Why it was refused; null: it was not. */
  refusal: string | null = null;
  #state: State = "peeking";
  #deadline: number;
  #buffered: Buffer[] = [];
  #bufferedBytes = 0;
  #ends: ProxiedEnds | null = null;
  #sawProxyHeader = false;
  #clientHasEnded = false;
  /** A side that is gone while the other one still has to take what it sent. */
  #isGone: "client" | "target" | null = null;
  #serverName: string | null;
  #visit: StreamVisit | null = null;
  #route: StreamRouteRuntime | null = null;
  #service: ServiceRuntime | null = null;
  #target: TargetRuntime | null = null;
  #tried: Set<string> | null = null;
  #upstream: Side | null = null;
  #pipe: Pipe | null = null;
  readonly #socket: ClientSocket;
  readonly #scope: StreamScope;

  constructor(
    id: string,
    socket: ClientSocket,
    at: {
      readonly portKey: string;
      readonly scope: StreamScope;
      /** Both ends, when somebody else has accepted the connection and read what a proxy says before it. */
      readonly ends?: ProxiedEnds | null;
      /** TLS name that was read before, by whoever ended TLS. */
      readonly serverName?: string | null;
    },
  ) {
    this.id = id;
    this.#socket = socket;
    this.portKey = at.portKey;
    this.#ends = at.ends ?? null;
    this.#sawProxyHeader = this.#ends !== null;
    this.#serverName = at.serverName ?? null;
    this.#scope = at.scope;
    this.#deadline = at.scope.now() + at.scope.prereadTimeout();
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

  /** Goes on at once when nothing of the client must be known first. */
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
    if (this.#state === "peeking") this.#decide();
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
    } else if (this.#state === "peeking") this.close();
  }

  /** `isReset`: the connection broke instead of being closed. */
  clientClosed(isReset: boolean): void {
    this.#isGone = isReset ? null : "client";
    if (this.#pipe === null || isReset) return this.close();
    // What the client sent before may still be on its way to the target.
    this.#pipe.clientEnded();
    this.#closeIfOver();
  }

  /** Looks at what has arrived, and connects as soon as it is clear where to. */
  #decide(): void {
    const routes = this.#scope.routesAt(this.portKey);
    const [first] = routes;
    if (first === undefined) return this.#refuse("no stream route is there any more");
    if (first.route.proxy_protocol_in && !this.#sawProxyHeader && !this.#readProxyHeader(first))
      return;
    const route = this.#routeFor(routes);
    if (route === "unknown") return;
    if (route === null) return this.#refuse("no stream route takes the TLS name");
    if (!route.admits(this.client.address)) return this.#refuse("the address may not connect");
    const service = this.#scope.serviceOf(route);
    if (service === null) return this.#refuse("the service is not there");
    if (!this.#scope.enter(route)) return this.#refuse("too many connections");
    this.#route = route;
    this.#service = service;
    const refusal = this.#askPlugins(route, service);
    if (refusal !== null) return this.#refuse(refusal.reason, refusal.reset === false);
    this.#connect();
  }

  #askPlugins(route: StreamRouteRuntime, { id, service }: ServiceRuntime): StreamRefusal | null {
    const facts = {
      id: this.id,
      protocol: "tcp",
      client: this.client,
      serverName: this.#serverName,
      service: { id, name: service.name },
    } as const;
    this.#visit = this.#scope.visit(facts, route);
    return this.#visit?.connect() ?? null;
  }

  /** False: not yet, or refused. */
  #readProxyHeader({ trusts }: StreamRouteRuntime): boolean {
    if (!trusts(this.#socket.remoteAddress)) {
      this.#refuse("a PROXY header from this address is not believed");
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
      this.#refuse("the connection does not begin with TLS");
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

  /** A target with the connection counted in; others may have filled one between the choice and that. */
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
    this.#deadline = this.#scope.now() + (timeout || Number.POSITIVE_INFINITY);
    this.#scope.dial(target, this);
  }

  // What the target's side tells.

  opened(socket: Side): void {
    if (this.#state !== "connecting") {
      socket.terminate();
      return;
    }
    this.#state = "piping";
    this.#upstream = socket;
    this.#service?.group.passive.answered(this.#target?.row ?? 0, 0);
    const pipe = new Pipe(this.#socket, socket, this.#scope.now());
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
    // What the target sent before may still be on its way to the client.
    this.#pipe.targetEnded();
    this.#closeIfOver();
  }

  #closeIfOver(): void {
    const pipe = this.#pipe;
    if (pipe === null) return;
    const isTaken =
      (this.#isGone === "target" && pipe.heldDown === 0) ||
      (this.#isGone === "client" && pipe.heldUp === 0);
    if (pipe.isOver || isTaken) this.close();
  }

  /** Called about once a second. */
  tick(now: number): void {
    if (this.#state === "piping") {
      const seconds = this.#route?.route.idle_timeout ?? 0;
      if (seconds > 0 && (this.#pipe?.quietFor(now) ?? 0) >= seconds * 1000) this.close();
    } else if (now >= this.#deadline) {
      if (this.#state === "connecting")
        this.failed("the target did not accept the connection in time");
      else this.#refuse("the client did not say what it wants in time");
    }
  }

  #refuse(reason: string, isOrderly = false): void {
    if (this.#state === "closed") return;
    this.refusal = reason;
    this.#endsOrderly = isOrderly;
    this.#scope.refused(reason, {
      client: this.client.address,
      route: this.#route?.route.name ?? null,
      target: this.#target?.id ?? null,
    });
    this.close();
  }

  /** Ends both sides now. What a side has not taken yet is sent by the system if it still can. */
  close(): void {
    if (this.#state === "closed") return;
    const wasOver = this.#pipe?.isOver === true || this.#isGone !== null || this.#endsOrderly;
    this.#state = "closed";
    this.#buffered = [];
    if (this.#target !== null) this.#service?.group.leave(this.#target);
    if (this.#route !== null) this.#scope.leave(this.#route);
    if (wasOver) {
      this.#socket.end();
      (this.#upstream as ClientSocket | null)?.end();
    } else {
      this.#socket.terminate();
      this.#upstream?.terminate();
    }
    this.#visit?.end({
      bytesIn: this.bytesIn,
      bytesOut: this.bytesOut,
      durationMs: Date.now() - this.startedAt,
      targetId: this.#target?.id ?? null,
      refusal: this.refusal,
    });
    this.#scope.closed(this);
  }
}
