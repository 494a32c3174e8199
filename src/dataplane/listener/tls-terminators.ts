// Terminates TLS behind an acceptor: one server on 127.0.0.1 for each certificate; knows no HTTP.
import { constants } from "node:crypto";
import type { SecureContext, TLSSocket } from "node:tls";
import type { Socket, TCPSocketListenOptions } from "bun";
import type { ClientSocket, Destination, SocketOwner } from "./loopback-tunnel.ts";
import { type ConnectionInfo, KnownConnections } from "./connection-info.ts";

/** A chain and its key, PEM. Compared by identity. */
export interface TerminatorCertificate {
  readonly cert: string;
  readonly key: string;
}

/** How client certificates are verified. */
export interface ClientAuth {
  readonly mode: "request" | "require";
  /** CA bundle for client certificates, PEM. */
  readonly ca: string;
  /** Certificate revocation lists, PEM. */
  readonly crl: string | null;
  /** Identifies these settings, to notice when the listener's have changed (`clientAuthKey`). */
  readonly key: string;
}

/** How TLS ends for one connection of the full engine. */
export interface TlsTermination {
  readonly context: SecureContext;
  readonly requestsCertificate: boolean;
  readonly requiresCertificate: boolean;
  /** The info of the finished handshake, or the reason to refuse it. */
  verify(socket: TLSSocket, info: ConnectionInfo): ConnectionInfo | string;
}

export interface TlsTerminatorsOptions {
  readonly minVersion: "1.2" | "1.3";
  readonly protocols: readonly string[];
  readonly clientAuth: ClientAuth | null;
  /** Takes over a connection after its handshake. */
  accepted(socket: ClientSocket, info: ConnectionInfo): SocketOwner;
  refused(reason: string, address: string): void;
  /** A client's handshake succeeded or failed. */
  onHandshake?(isDone: boolean): void;
}

/** Seconds for a handshake; also closes connections that other programs open. */
const HANDSHAKE_S = 12;

interface Terminator extends Destination {
  stop(): void;
}

type TlsSocket = Socket<SocketOwner | null> & ClientSocket;

export class TlsTerminators {
  readonly #options: TlsTerminatorsOptions;
  readonly #terminators = new Map<TerminatorCertificate, Terminator>();
  readonly #open = new Set<TlsSocket>();

  constructor(options: TlsTerminatorsOptions) {
    this.#options = options;
  }

  /** The server that presents the certificate, opened on first use. Throws when TLS does not accept the settings. */
  find(certificate: TerminatorCertificate): Destination {
    const known = this.#terminators.get(certificate);
    if (known !== undefined) return known;
    const terminator = this.#listen(certificate);
    this.#terminators.set(certificate, terminator);
    return terminator;
  }

  /** Closes the servers of certificates that are no longer in use; their connections go on. */
  closeUnused(isUsed: (certificate: TerminatorCertificate) => boolean): void {
    for (const [certificate, terminator] of this.#terminators) {
      // A connection to it may be opening.
      if (isUsed(certificate) || terminator.known.size > 0) continue;
      terminator.stop();
      this.#terminators.delete(certificate);
    }
  }

  /** Stops accepting. */
  stop(): void {
    for (const terminator of this.#terminators.values()) terminator.stop();
    this.#terminators.clear();
  }

  /** Closes all servers and connections at once. */
  close(): void {
    this.stop();
    for (const socket of this.#open) socket.terminate();
  }

  #listen({ cert, key }: TerminatorCertificate): Terminator {
    const { minVersion, protocols, clientAuth } = this.#options;
    const known = new KnownConnections();
    const server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      allowHalfOpen: true,
      tls: {
        cert,
        key,
        minVersion: minVersion === "1.3" ? 0x0304 : 0x0303,
        ...(protocols.length === 0 ? {} : { ALPNProtocols: alpnWireFormat(protocols) }),
        ...(clientAuth === null ? {} : clientAuthOptions(clientAuth)),
      },
      socket: this.#handlers(known),
    } as unknown as TCPSocketListenOptions<SocketOwner | null>);
    return { port: server.port, known, stop: () => server.stop(false) };
  }

  #verify(socket: TlsSocket, info: ConnectionInfo): ConnectionInfo | string {
    const { getServername } = socket as unknown as { getServername?: () => unknown };
    const handshake = {
      tlsVersion: socket.getTLSVersion(),
      serverName: getServername?.call(socket),
      isAuthorized: socket.authorized,
      peerCertificate: socket.getPeerCertificate(),
    };
    return verifyHandshake(handshake, info, this.#options.clientAuth);
  }

  #handlers(known: KnownConnections) {
    return {
      open: (socket: TlsSocket) => {
        socket.data = null;
        this.#open.add(socket);
        socket.timeout(HANDSHAKE_S);
      },
      handshake: (socket: TlsSocket, isDone: boolean) => {
        const peer = { address: socket.remoteAddress, port: socket.remotePort };
        const info = known.find(peer);
        // Another program on this machine must not bypass the acceptor.
        if (info === null) return void socket.terminate();
        this.#options.onHandshake?.(isDone);
        const verified = isDone ? this.#verify(socket, info) : "the TLS handshake failed";
        if (typeof verified === "string") {
          this.#options.refused(verified, info.address);
          socket.terminate();
          return;
        }
        socket.timeout(0);
        socket.data = this.#options.accepted(socket, verified);
      },
      data: (socket: TlsSocket, chunk: Buffer) => socket.data?.clientSent(chunk),
      drain: (socket: TlsSocket) => socket.data?.clientDrained(),
      end: (socket: TlsSocket) => {
        if (socket.data === null) socket.terminate();
        else socket.data.clientEnded();
      },
      timeout: (socket: TlsSocket) => {
        if (socket.data === null) socket.terminate();
      },
      close: (socket: TlsSocket, error: unknown) => {
        this.#open.delete(socket);
        socket.data?.clientClosed(error instanceof Error);
      },
      error: (socket: TlsSocket) => socket.data?.clientClosed(true),
    };
  }
}

/** Checks a finished handshake: the connection's info, or the reason to refuse it. */
export function verifyHandshake(
  socket: HandshakeSocket,
  info: ConnectionInfo,
  clientAuth: ClientAuth | null,
): ConnectionInfo | string {
  const { tlsVersion } = socket;
  if (clientAuth === null) return { ...info, tlsVersion };
  // The acceptor chose the certificate by the name that it read; the handshake must have used the same name.
  if (nameOf(socket.serverName) !== info.serverName)
    return "the TLS handshake was for another server name";
  const raw = certificateOf(socket.peerCertificate);
  if (raw === null && clientAuth.mode === "require") return "the client sent no certificate";
  if (raw !== null && !socket.isAuthorized) return "the client's certificate is not valid";
  return {
    ...info,
    tlsVersion,
    clientAuthKey: clientAuth.key,
    clientCertificate: raw,
    clientCertificateField: raw === null ? "" : `client-cert: :${raw.toString("base64")}:\r\n`,
  };
}

/** A finished handshake, of Bun's or Node's TLS. */
export interface HandshakeSocket {
  readonly tlsVersion: string | null;
  readonly serverName: unknown;
  readonly isAuthorized: boolean;
  readonly peerCertificate: unknown;
}

/** Without session tickets every connection presents its certificate again; none is resumed from another handshake. */
const clientAuthOptions = ({ mode, ca, crl }: ClientAuth) => ({
  ca,
  ...(crl === null ? {} : { crl }),
  requestCert: true,
  rejectUnauthorized: mode === "require",
  secureOptions: constants.SSL_OP_NO_TICKET,
});

/** RFC 7301 section 3.1: each name is preceded by its length. */
function alpnWireFormat(protocols: readonly string[]): Buffer {
  return Buffer.concat(
    protocols.map((name) => Buffer.concat([Buffer.from([name.length]), Buffer.from(name)])),
  );
}

const nameOf = (name: unknown): string | null =>
  typeof name === "string" && name !== "" ? name.toLowerCase().replace(/\.$/, "") : null;

function certificateOf(certificate: unknown): Buffer | null {
  const { raw } = (certificate ?? {}) as { readonly raw?: Uint8Array };
  return raw === undefined ? null : Buffer.from(raw);
}
