// One client of a UDP stream route: its own socket towards a target, and when it was last heard of; knows no listening port.
import type { udp } from "bun";
import { isIP } from "node:net";
import type { FailureText } from "../../shared-memory/target-health.ts";
import type { Address } from "../names/addresses.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import { clientKey, type StreamRouteRuntime } from "./stream-runtime.ts";

/** Where the client sends from. */
export interface ClientEnd {
  readonly address: string;
  readonly port: number;
}

export interface UdpSessionOptions {
  readonly id: string;
  readonly client: ClientEnd;
  readonly route: StreamRouteRuntime;
  readonly service: ServiceRuntime;
  readonly now: number;
  /** Sends to the client. */
  reply(datagram: Buffer): void;
  /** A datagram of the client was not passed on. */
  dropped(reason: string): void;
  /** Called once, when it has ended. */
  closed(session: UdpSession): void;
}

/** Datagrams that may wait until the target's socket is open. */
const MAX_WAITING = 16;
const UNREACHABLE: FailureText = "the target refused the connection";

export class UdpSession {
  readonly id: string;
  readonly client: ClientEnd;
  readonly startedAt = Date.now();
  /** The version whose settings hold; a new one that leads to the same place takes over. */
  route: StreamRouteRuntime;
  /** Why it was refused; null: it was not. */
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
  #hasAnswered = false;
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

  /** Chooses a target and opens a socket to it; datagrams that come meanwhile wait. */
  begin(): void {
    const { service, client } = this.#options;
    const { group } = service;
    const key = clientKey(service, client.address);
    for (;;) {
      const target = group.pick({ key, tried: this.#tried });
      if (target === null) return this.#giveUp("no target is available");
      if (group.enter(target)) {
        this.#target = target;
        return this.#find(target);
      }
      this.#triedAlso(target);
    }
  }

  #triedAlso(target: TargetRuntime): void {
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
      if (address.unix !== null) throw new Error("UDP knows no unix sockets");
      const socket = await Bun.udpSocket({
        // Otherwise the socket is one for IPv4 and cannot be connected.
        ...(isIP(hostname) === 6 ? { hostname: "::" } : {}),
        connect: { hostname, port: address.port === 0 ? endpoint.port : address.port },
        socket: {
          data: (_, datagram) => this.#answered(datagram),
          error: (error: unknown) => this.#erred(error),
        },
      });
      if (this.#isClosed || this.#target !== target) return socket.close();
      this.#socket = socket;
    } catch {
      // Out of sockets, or no way to the address.
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
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(datagram);
    else this.#options.dropped("the target's socket is not open yet");
  }

  #send(datagram: Buffer): void {
    try {
      if (this.#socket?.send(datagram) === true) return;
      this.#options.dropped("the system's buffer is full");
    } catch (error) {
      // A report about an earlier datagram may come out of this call.
      if ((error as { code?: string }).code === "ECONNREFUSED") this.#erred(error);
      else this.#options.dropped("the system refused it");
    }
  }

  #answered(datagram: Buffer): void {
    const target = this.#target;
    if (target === null) return;
    this.lastAt = performance.now();
    this.bytesOut += datagram.length;
    if (!this.#hasAnswered) {
      this.#hasAnswered = true;
      this.#options.service.group.passive.answered(target.row, 0);
    }
    this.#options.reply(datagram);
  }

  /** The system tells of ICMP messages here: nobody listens on the target's port, or there is no way to it. */
  #erred(error: unknown): void {
    const { code } = (error ?? {}) as { readonly code?: string };
    if (this.#isClosed || code === "EMSGSIZE") return;
    const target = this.#target;
    if (target !== null) this.#options.service.group.passive.failed(target.row, UNREACHABLE);
    // What the client sends next begins a new session, with the target whose turn it is then.
    this.close();
  }

  /** Could not even be opened: another target may do. */
  #failed(failure: FailureText): void {
    const target = this.#target;
    if (target === null || this.#isClosed) return;
    const { group } = this.#options.service;
    group.passive.failed(target.row, failure);
    group.leave(target);
    this.#target = null;
    this.#triedAlso(target);
    this.begin();
  }

  #giveUp(reason: string): void {
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
