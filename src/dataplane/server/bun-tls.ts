// TLS on accepted plain sockets of Bun: the only file with the names for it that Bun does not document; knows no name and no protocol.
import type { SecureContextOptions } from "node:tls";
import { bufferRelease } from "../buffer-release.ts";
import { abandon, type ClientSocket, type SocketOwner } from "../listener/client-socket.ts";

/** A chain and its key, PEM. Compared by identity. */
export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate with its settings, as Bun's TLS has it. */
export interface TlsContext {
  readonly native: object;
}

/** A socket whose bytes TLS carries. What is not here is as on a plain one. */
export interface TlsSocket extends ClientSocket {
  data: TlsOwner;
  readonly alpnProtocol: unknown;
  readonly authorized: boolean;
  getTLSVersion(): string;
  getServername(): unknown;
  getPeerCertificate(): unknown;
  isSessionReused(): boolean;
}

/** Handles the events of a socket with TLS; the socket may get another owner after the handshake. */
export interface TlsOwner extends SocketOwner {
  /** Comes before the first byte; also within `startTls`. After a failure `clientClosed` follows. */
  handshake?(socket: TlsSocket, isDone: boolean): void;
}

export interface TlsStart {
  readonly context: TlsContext;
  /** By ALPN (RFC 7301), in order of preference; null: none is negotiated. */
  readonly protocols: readonly string[] | null;
  readonly clientCertificate: "none" | "request" | "require";
  /** What the client has sent so far. */
  readonly received: Uint8Array;
  readonly owner: TlsOwner;
}

/** Throws when TLS does not accept the options. */
export function createTlsContext(options: SecureContextOptions): TlsContext {
  // Loaded by the first listener with TLS.
  const { createSecureContext } = process.getBuiltinModule("node:tls");
  const { context } = createSecureContext(options) as { readonly context?: unknown };
  if (typeof context !== "object" || context === null)
    throw new Error("this version of Bun has no TLS contexts for accepted sockets");
  return { native: context };
}

/** What Bun calls in place of a plain socket's `tls` option. */
interface Upgradable {
  data: unknown;
  upgradeTLS(options: object): readonly [raw: unknown, secured: TlsSocket];
}

/**
 * Begins the handshake on a socket of a listener whose handlers call those of `socket.data`. The events of the socket with TLS go to
 * `start.owner`, some of them before this returns; those of the plain one to `plain`.
 */
export function startTls(
  socket: ClientSocket,
  start: TlsStart,
): { readonly plain: SocketOwner; readonly secured: TlsSocket } {
  const { context, protocols, clientCertificate, received, owner } = start;
  const upgradable = socket as unknown as Upgradable;
  // The listener's handlers go on to see the socket's bytes, and its end.
  upgradable.data = ciphertext;
  const [, secured] = upgradable.upgradeTLS({
    isServer: true,
    // Without the bytes that were read the handshake would wait for them.
    initialData: received,
    secureContext: context.native,
    tls: {
      ...(protocols === null ? {} : { ALPNProtocols: alpnWireFormat(protocols) }),
      requestCert: clientCertificate !== "none",
      // Ends handshakes without a certificate, with the alert; those with one that is not valid are done, and not `authorized`.
      rejectUnauthorized: clientCertificate === "require",
    },
    data: owner,
    socket: handlers,
  });
  return { plain: ciphertext, secured };
}

const handlers = {
  open() {},
  handshake(socket: TlsSocket, isDone: boolean) {
    try {
      socket.data.handshake?.(socket, isDone);
    } catch {
      // Thrown here, it would leave the connection open.
      socket.terminate();
    }
  },
  data: (socket: TlsSocket, chunk: Buffer) => socket.data.clientSent(chunk),
  drain: (socket: TlsSocket) => socket.data.clientDrained(),
  end: (socket: TlsSocket) => socket.data.clientEnded(),
  close: (socket: TlsSocket, error: unknown) => socket.data.clientClosed(error instanceof Error),
  error: (socket: TlsSocket) => abandon(socket),
};

/** Owns the plain socket under TLS. */
const ciphertext: SocketOwner = {
  clientSent: (chunk) => bufferRelease.releaseNow(chunk),
  clientDrained() {},
  clientEnded() {},
  clientClosed() {},
};

/** RFC 7301 section 3.1: each name is preceded by its length. */
const alpnWireFormat = (protocols: readonly string[]): string =>
  protocols.map((name) => String.fromCharCode(name.length) + name).join("");
