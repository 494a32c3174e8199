// A client's connection until it is clear where it leads: PROXY header, TLS name; knows no server behind.
import { type ClientHello, MAX_HELLO_BYTES, readClientHello } from "../../net/client-hello.ts";
import { type ProxiedEnds, readProxyHeader } from "../../net/proxy-protocol.ts";
import { normalizeAddress } from "../../net/address.ts";
import type { ClientSocket, SocketOwner } from "./carried-connection.ts";

/** The place that a connection takes among those that a listener may have. */
export interface Ticket {
  /** Counts it for the client's address too, once that is known; a refusal when there are too many. */
  claim(address: string): string | null;
  /** Gives the place back. May be called again. */
  leave(): void;
}

/** What is known of a connection before it goes on. */
export interface Arrival {
  readonly socket: ClientSocket;
  /** From a PROXY header, else from the socket. */
  readonly ends: ProxiedEnds;
  /** Null when the front does not look for one. */
  readonly hello: ClientHello | null;
  /** What the client has sent so far, behind the PROXY header. */
  readonly early: Buffer;
  readonly ticket: Ticket;
}

/** Where a connection goes. */
export type Verdict =
  /** `holdsTicket`: the owner gives the ticket back, not we. */
  | { readonly owner: SocketOwner; readonly holdsTicket: boolean }
  /** `alert`: what the client is told before its connection is closed. */
  | { readonly refusal: string; readonly alert?: Buffer };

export interface ArrivalRules {
  readonly now: () => number;
  /** Time in which the client must send what decides where it goes. */
  readonly timeoutMs: number;
  /** Whose PROXY header is believed; null when none is expected. */
  readonly trusts: ((address: string) => boolean) | null;
  /** Whether the connection must begin with TLS. */
  readonly readsHello: boolean;
  /** Runs once, when all is known. The owner must take what is early. */
  settle(arrival: Arrival): Verdict;
  refused(reason: string, address: string): void;
  /** Runs once: settled, refused or gone. */
  left(connection: ArrivingConnection): void;
}

const MAX_EARLY_BYTES = MAX_HELLO_BYTES * 2;
/** Two PROXY headers would fit. */
const MAX_PROXY_BYTES = 2048;

export class ArrivingConnection implements SocketOwner {
  readonly #socket: ClientSocket & { data: SocketOwner };
  readonly #ticket: Ticket;
  readonly #rules: ArrivalRules;
  readonly #deadline: number;
  #early: Buffer = Buffer.alloc(0);
  #ends: ProxiedEnds | null = null;
  #waitsForProxy: boolean;
  #isOver = false;

  constructor(socket: ClientSocket & { data: SocketOwner }, ticket: Ticket, rules: ArrivalRules) {
    this.#socket = socket;
    this.#ticket = ticket;
    this.#rules = rules;
    this.#deadline = rules.now() + rules.timeoutMs;
    this.#waitsForProxy = rules.trusts !== null;
  }

  /** Goes on at once when nothing of the client must be known first. */
  begin(): void {
    const peer = addressOf(this.#socket.remoteAddress);
    if (this.#rules.trusts?.(peer) === false)
      return this.#refuse("a PROXY header from this address is not believed");
    const tooMany = this.#waitsForProxy ? null : this.#ticket.claim(peer);
    if (tooMany !== null) this.#refuse(tooMany);
    else this.#look();
  }

  clientSent(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#early = this.#early.length === 0 ? chunk : Buffer.concat([this.#early, chunk]);
    this.#look();
  }

  clientDrained(): void {}

  clientEnded(): void {
    this.close();
  }

  clientClosed(): void {
    this.close();
  }

  /** Called about once a second. */
  tick(now: number): void {
    if (now >= this.#deadline) this.#refuse("the client did not say what it wants in time");
  }

  #look(): void {
    if (this.#waitsForProxy && !this.#readProxyHeader()) return;
    const hello = this.#rules.readsHello ? this.#readHello() : null;
    if (hello === "unknown") return;
    const ends = this.#ends ?? this.#ownEnds();
    const early = this.#early;
    const ticket = this.#ticket;
    const verdict = this.#settle({ socket: this.#socket, ends, hello, early, ticket });
    if ("refusal" in verdict) return this.#refuse(verdict.refusal, verdict.alert);
    this.#isOver = true;
    this.#early = Buffer.alloc(0);
    this.#socket.data = verdict.owner;
    if (!verdict.holdsTicket) ticket.leave();
    this.#rules.left(this);
  }

  #settle(arrival: Arrival): Verdict {
    try {
      return this.#rules.settle(arrival);
    } catch (error) {
      return { refusal: `the connection cannot be served: ${String(error)}` };
    }
  }

  /** False: not yet, or refused. */
  #readProxyHeader(): boolean {
    if (this.#early.length === 0) return false;
    const header = readProxyHeader(this.#early);
    if (header.kind === "invalid") this.#refuse(header.reason);
    else if (header.kind === "incomplete" && this.#early.length > MAX_PROXY_BYTES)
      this.#refuse("the PROXY header is too long");
    if (header.kind !== "header") return false;
    this.#waitsForProxy = false;
    this.#ends = header.ends;
    this.#early = this.#early.subarray(header.bytes);
    const tooMany = this.#ticket.claim(this.#address);
    if (tooMany === null) return true;
    this.#refuse(tooMany);
    return false;
  }

  #readHello(): ClientHello | "unknown" {
    if (this.#early.length === 0) return "unknown";
    const hello = readClientHello(this.#early);
    if (hello === "incomplete" && this.#early.length <= MAX_EARLY_BYTES) return "unknown";
    if (typeof hello !== "string") return hello;
    this.#refuse("the connection does not begin with TLS");
    return "unknown";
  }

  #ownEnds(): ProxiedEnds {
    const { remotePort, localAddress, localPort } = this.#socket;
    return {
      source: { address: this.#address, port: remotePort },
      destination: { address: addressOf(localAddress), port: localPort },
    };
  }

  get #address(): string {
    return this.#ends?.source.address ?? addressOf(this.#socket.remoteAddress);
  }

  #refuse(reason: string, alert: Buffer | null = null): void {
    if (this.#isOver) return;
    this.#rules.refused(reason, this.#address);
    if (alert !== null) {
      this.#socket.write(alert);
      this.#socket.end();
    }
    this.close(alert === null);
  }

  /** Ends it now. */
  close(isAbrupt = true): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#early = Buffer.alloc(0);
    if (isAbrupt) this.#socket.terminate();
    this.#ticket.leave();
    this.#rules.left(this);
  }
}

/** A socket for both IPv4 and IPv6 shows IPv4 clients in IPv6 notation. */
const addressOf = (text: string) => (text.includes(":") ? (normalizeAddress(text) ?? text) : text);
