// One client of a UDP stream route: its own socket to a target, and its last activity; knows no listening port.
import type { udp } from "bun";
import { isIP } from "node:net";
import type { FailureText } from "../../shared-memory/target-health.ts";
import type { Address } from "../names/addresses.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import { clientKey, type StreamRouteRuntime } from "./stream-runtime.ts";

/** The client's address and port. */
export interface ClientEndpoint {
  readonly address: string;
  readonly port: number;
}

export interface UdpSessionOptions {
  readonly id: string;
  readonly client: ClientEndpoint;
  readonly route: StreamRouteRuntime;
  readonly service: ServiceRuntime;
  readonly now: number;
  /** Sends to the client. */
  reply(datagram: Buffer): void;
  /** A datagram of the client was dropped. */
  dropped(reason: string): void;
  /** Called once. */
  closed(session: UdpSession): void;
}

/** Datagrams queued until the target's socket is open. */
const MAX_QUEUED = 16;
const UNREACHABLE: FailureText = "the target refused the connection";

export class UdpSession {
  readonly id: string;
  readonly client: ClientEndpoint;
  readonly startedAt = Date.now();
  /** The version whose settings apply; replaced by a new version that leads to the same targets. */
  route: StreamRouteRuntime;
  /** The reason of a refusal; null: not refused. */
  refusal: string | null = null;
  bytesIn = 0;
  bytesOut = 0;
  /** In the worker's milliseconds. */
  lastAt: number;
  #target: TargetRuntime | null = null;
  #tried: Set<string> | null = null;
  #socket: udp.ConnectedSocket<"buffer"> | null = null;
  #waiting: Buffer[] = [];
  #isClosed = false;
  #hasResponded = false;
  readonly #options: UdpSessionOptions;

  constructor(options: UdpSessionOptions) {
    this.#options = options;
    this.id = options.id;
    this.client = options.client;
    this.route = options.route;
    this.lastAt = options.now;
  }

  get target(): TargetRuntime | null {
    return this.#target;
  }

  /** Selects a target and opens a socket to it; datagrams queue meanwhile. */
  begin(): void {
    const { service, client } = this.#options;
    const { group } = service;
    const key = clientKey(service, client.address);
    for (;;) {
      const target = group.pick({ key, tried: this.#tried });
      if (target === null) return this.#refuse("no target is available");
      if (group.enter(target)) {
        this.#target = target;
        return this.#find(target);
      }
      this.#markTried(target);
    }
  }

  #markTried(target: TargetRuntime): void {
    this.#tried ??= new Set();
    this.#tried.add(target.id);
  }

  #find(target: TargetRuntime): void {
    const { addresses } = target.endpoint;
    const next = () => {
      const address = addresses.next(null);
      if (address === null) this.#failed("the target's name could not be resolved");
      else void this.#open(target, address);
    };
    if (addresses.size > 0) next();
    else if (addresses.whenFound(() => this.#target === target && next()) === null)
      this.#failed("the target's name could not be resolved");
  }

  async #open({ endpoint }: TargetRuntime, address: Address): Promise<void> {
    const hostname = address.host;
    const target = this.#target;
    try {
      if (address.unix !== null) throw new Error("UDP does not support unix sockets");
      const socket = await Bun.udpSocket({
        // Without it Bun opens an IPv4 socket, which cannot connect.
        ...(isIP(hostname) === 6 ? { hostname: "::" } : {}),
        connect: { hostname, port: address.port === 0 ? endpoint.port : address.port },
        socket: {
          data: (_, datagram) => this.#targetSent(datagram),
          error: (error: unknown) => this.#socketError(error),
        },
      });
      if (this.#isClosed || this.#target !== target) return socket.close();
      this.#socket = socket;
    } catch {
      // Out of file descriptors, or no route to the address.
      if (this.#target !== target) return;
      endpoint.addresses.failed(address);
      return this.#failed(UNREACHABLE);
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const datagram of waiting) this.#send(datagram);
  }

  sent(datagram: Buffer, now: number): void {
    if (this.#isClosed) return;
    this.lastAt = now;
    this.bytesIn += datagram.length;
    if (this.#socket !== null) this.#send(datagram);
    else if (this.#waiting.length < MAX_QUEUED) this.#waiting.push(datagram);
    else this.#options.dropped("the target's socket is not open yet");
  }

  #send(datagram: Buffer): void {
    try {
      if (this.#socket?.send(datagram) === true) return;
      this.#options.dropped("the socket's send buffer is full");
    } catch (error) {
      // An ICMP error of an earlier datagram.
      if ((error as { code?: string }).code === "ECONNREFUSED") this.#socketError(error);
      else this.#options.dropped("the kernel refused the datagram");
    }
  }

  #targetSent(datagram: Buffer): void {
    const target = this.#target;
    if (target === null) return;
    this.lastAt = performance.now();
    this.bytesOut += datagram.length;
    if (!this.#hasResponded) {
      this.#hasResponded = true;
      this.#options.service.group.passive.responded(target.row, 0);
    }
    this.#options.reply(datagram);
  }

  /** ICMP errors: the target's port is closed, or there is no route to it. */
  #socketError(error: unknown): void {
    const { code } = (error ?? {}) as { readonly code?: string };
    if (this.#isClosed || code === "EMSGSIZE") return;
    const target = this.#target;
    if (target !== null) this.#options.service.group.passive.failed(target.row, UNREACHABLE);
    // The client's next datagram begins a new session, with a newly selected target.
    this.close();
  }

  /** The target's socket could not be opened: tries another target. */
  #failed(failure: FailureText): void {
    const target = this.#target;
    if (target === null || this.#isClosed) return;
    const { group } = this.#options.service;
    group.passive.failed(target.row, failure);
    group.leave(target);
    this.#target = null;
    this.#markTried(target);
    this.begin();
  }

  #refuse(reason: string): void {
    this.refusal = reason;
    this.#options.dropped(reason);
    this.close();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting = [];
    this.#socket?.close();
    if (this.#target !== null) this.#options.service.group.leave(this.#target);
    this.#options.closed(this);
  }
}
