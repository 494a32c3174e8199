// A client's connection from its ClientHello to the end of the TLS handshake; knows no certificate's name and no HTTP.
import type { ConnectionInfo } from "../listener/connection-info.ts";
import type { ClientSocket, SocketOwner } from "../listener/client-socket.ts";
import { type ClientAuth, verifyHandshake } from "../listener/client-auth.ts";
import { startTls, type TlsContext, type TlsOwner, type TlsSocket } from "./bun-tls.ts";

export interface TlsHandshakeOptions {
  readonly info: ConnectionInfo;
  readonly context: TlsContext;
  readonly clientAuth: ClientAuth | null;
  /** The one that the client offers and the gateway has chosen; null: none. */
  readonly protocol: string | null;
  /** When the handshake must be done, in `performance.now()`. */
  readonly deadline: number;
  /** Runs once, when TLS is done: `isDone`, or has found something wrong. */
  ended(isDone: boolean): void;
  /** Runs once, when the client is accepted; gives the socket another owner. */
  accepted(socket: TlsSocket, info: ConnectionInfo): void;
  /** Runs once when it is not; the connection is closed, or about to be. */
  refused(reason: string): void;
}

export class TlsHandshake implements TlsOwner {
  readonly #options: TlsHandshakeOptions;
  #socket: TlsSocket | null = null;
  #isOver = false;

  constructor(options: TlsHandshakeOptions) {
    this.#options = options;
  }

  /** `received`: what the client has sent so far. Returns the owner of the plain socket under TLS. */
  begin(socket: ClientSocket, received: Buffer): SocketOwner {
    const { context, clientAuth, protocol } = this.#options;
    const { plain, secured } = startTls(socket, {
      context,
      received,
      protocols: protocol === null ? null : [protocol],
      clientCertificate: clientAuth?.mode ?? "none",
      owner: this,
    });
    this.#socket = secured;
    return plain;
  }

  handshake(socket: TlsSocket, isDone: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { ended, accepted, refused } = this.#options;
    ended(isDone);
    const verified = isDone ? this.#verify(socket) : "the TLS handshake failed";
    if (typeof verified !== "string") return accepted(socket, verified);
    refused(verified);
    // Where TLS has failed, Bun sends the alert and closes.
    if (isDone) socket.terminate();
  }

  #verify(socket: TlsSocket): ConnectionInfo | string {
    const { info, clientAuth } = this.#options;
    // It would carry the identity of the handshake that began it.
    if (clientAuth !== null && socket.isSessionReused()) return "the TLS session was resumed";
    const handshake = {
      tlsVersion: socket.getTLSVersion(),
      serverName: socket.getServername(),
      isAuthorized: socket.authorized,
      peerCertificate: clientAuth === null ? null : socket.getPeerCertificate(),
    };
    return verifyHandshake(handshake, info, clientAuth);
  }

  /** Called about once a second. */
  tick(now: number): void {
    if (now >= this.#options.deadline) this.#fail("the TLS handshake was not done in time");
  }

  #fail(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { ended, refused } = this.#options;
    ended(false);
    refused(reason);
    this.#socket?.terminate();
  }

  /** Closes at once. */
  close(): void {
    this.#fail("the gateway has stopped");
  }

  // Events of Bun's socket before the end of the handshake.

  clientSent(): void {}

  clientDrained(): void {}

  clientEnded(): void {
    this.#fail("the client has left within the TLS handshake");
  }

  clientClosed(): void {
    this.#fail("the client has left within the TLS handshake");
  }
}
