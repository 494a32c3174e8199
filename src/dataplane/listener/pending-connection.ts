// A client's connection before the gateway has routed it: reads the PROXY header and the TLS server name; knows no server behind.
import { type ClientHello, MAX_HELLO_BYTES, readClientHello } from "../../net/client-hello.ts";
import { type ProxiedEnds, readProxyHeader } from "../../net/proxy-protocol.ts";
import { normalizeAddress } from "../../net/address.ts";
import type { AcceptedSocket, SocketOwner } from "./client-socket.ts";

/** One of the connections that a listener may have open (`max_connections`). */
export interface ConnectionSlot {
  /** Counts the connection for the client's address too, once that is known; the reason when there are too many. */
  claim(address: string): string | null;
  /** Idempotent. */
  release(): void;
}

/** What the gateway has read of a connection before routing it. */
export interface Preread {
  readonly socket: AcceptedSocket;
  /** From a PROXY header, else from the socket. */
  readonly ends: ProxiedEnds;
  /** Null where none is read. */
  readonly hello: ClientHello | null;
  /** What the client has sent so far, without the PROXY header. */
  readonly buffered: Buffer;
  readonly slot: ConnectionSlot;
}

/** What becomes of a connection. */
export type AcceptDecision =
  /** `ownsSlot`: the owner releases the slot. */
  | { readonly owner: SocketOwner; readonly ownsSlot: boolean }
  /** `alert`: bytes to send to the client before closing. */
  | { readonly refusal: string; readonly alert?: Buffer };

export interface PendingConnectionOptions {
  readonly now: () => number;
  /** Time in which the client must send its PROXY header and ClientHello. */
  readonly timeoutMs: number;
  /** Whether to trust the PROXY header of a peer; null: no PROXY protocol. */
  readonly trusts: ((address: string) => boolean) | null;
  /** Whether the connection must begin with a TLS ClientHello. */
  readonly readsHello: boolean;
  /** Runs once, when everything is read. The owner must forward what is buffered. */
  decide(preread: Preread): AcceptDecision;
  refused(reason: string, address: string): void;
  /** Runs once: the connection was routed, refused or closed. */
  done(connection: PendingConnection): void;
}

const NOTHING = Buffer.alloc(0);
const MAX_BUFFERED_BYTES = MAX_HELLO_BYTES * 2;
/** RFC 8446 sections 5.1 and 6: the type of the first record, and a fatal alert, decode_error. */
const HANDSHAKE = 22;
const DECODE_ERROR = Buffer.from([21, 3, 3, 0, 2, 2, 50]);
/** Two PROXY headers would fit. */
const MAX_PROXY_BYTES = 2048;

export class PendingConnection implements SocketOwner {
  readonly #socket: AcceptedSocket;
  readonly #slot: ConnectionSlot;
  readonly #options: PendingConnectionOptions;
  readonly #deadline: number;
  #buffered: Buffer = NOTHING;
  #ends: ProxiedEnds | null = null;
  #waitsForProxy: boolean;
  #isOver = false;

  constructor(socket: AcceptedSocket, slot: ConnectionSlot, options: PendingConnectionOptions) {
    this.#socket = socket;
    this.#slot = slot;
    this.#options = options;
    this.#deadline = options.now() + options.timeoutMs;
    this.#waitsForProxy = options.trusts !== null;
  }

  /** Routes the connection at once when nothing has to be read first. */
  begin(): void {
    const peer = addressOf(this.#socket.remoteAddress);
    if (this.#options.trusts?.(peer) === false)
      return this.#refuse("PROXY headers from this address are not trusted");
    const tooMany = this.#waitsForProxy ? null : this.#slot.claim(peer);
    if (tooMany !== null) this.#refuse(tooMany);
    else this.#advance();
  }

  clientSent(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#buffered = this.#buffered.length === 0 ? chunk : Buffer.concat([this.#buffered, chunk]);
    this.#advance();
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
    if (now >= this.#deadline)
      this.#refuse("no complete PROXY header or TLS ClientHello arrived in time");
  }

  #advance(): void {
    if (this.#waitsForProxy && !this.#readProxyHeader()) return;
    const hello = this.#options.readsHello ? this.#readHello() : null;
    if (hello === "unknown") return;
    const ends = this.#ends ?? this.#socketEnds();
    const buffered = this.#buffered;
    const slot = this.#slot;
    const verdict = this.#decide({ socket: this.#socket, ends, hello, buffered, slot });
    if ("refusal" in verdict) return this.#refuse(verdict.refusal, verdict.alert);
    this.#isOver = true;
    this.#buffered = NOTHING;
    this.#socket.data = verdict.owner;
    if (!verdict.ownsSlot) slot.release();
    this.#options.done(this);
  }

  #decide(preread: Preread): AcceptDecision {
    try {
      return this.#options.decide(preread);
    } catch (error) {
      return { refusal: `the connection cannot be served: ${String(error)}` };
    }
  }

  /** False: not yet, or refused. */
  #readProxyHeader(): boolean {
    if (this.#buffered.length === 0) return false;
    const header = readProxyHeader(this.#buffered);
    if (header.kind === "invalid") this.#refuse(header.reason);
    else if (header.kind === "incomplete" && this.#buffered.length > MAX_PROXY_BYTES)
      this.#refuse("the PROXY header is too long");
    if (header.kind !== "header") return false;
    this.#waitsForProxy = false;
    this.#ends = header.ends;
    this.#buffered = this.#buffered.subarray(header.bytes);
    const tooMany = this.#slot.claim(this.#address);
    if (tooMany === null) return true;
    this.#refuse(tooMany);
    return false;
  }

  #readHello(): ClientHello | "unknown" {
    if (this.#buffered.length === 0) return "unknown";
    const hello = readClientHello(this.#buffered);
    if (hello === "incomplete" && this.#buffered.length <= MAX_BUFFERED_BYTES) return "unknown";
    if (typeof hello !== "string") return hello;
    const isTls = this.#buffered[0] === HANDSHAKE;
    this.#refuse(
      "the connection does not begin with a TLS ClientHello",
      isTls ? DECODE_ERROR : null,
    );
    return "unknown";
  }

  #socketEnds(): ProxiedEnds {
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
    this.#options.refused(reason, this.#address);
    if (alert !== null) {
      this.#socket.write(alert);
      this.#socket.shutdown();
      this.#socket.close();
    }
    this.close(alert === null);
  }

  /** Closes the connection; `isAbrupt`: with a reset. */
  close(isAbrupt = true): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#buffered = NOTHING;
    if (isAbrupt) this.#socket.terminate();
    this.#slot.release();
    this.#options.done(this);
  }
}

/** A socket for both IPv4 and IPv6 shows IPv4 clients in IPv6 notation. */
const addressOf = (text: string) => (text.includes(":") ? (normalizeAddress(text) ?? text) : text);
