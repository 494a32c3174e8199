// Ends TLS for connections that the front has looked at: one server on 127.0.0.1 for each certificate; knows no HTTP.
import { constants } from "node:crypto";
import type { Socket, TCPSocketListenOptions } from "bun";
import type { ClientSocket, Destination, SocketOwner } from "./carried-connection.ts";
import { type ConnectionFacts, KnownConnections } from "./connection-facts.ts";

/** A chain and its key, PEM. The same object as long as it is the same certificate. */
export interface EndCertificate {
  readonly cert: string;
  readonly key: string;
}

/** What clients must show. */
export interface ClientAuth {
  readonly mode: "request" | "require";
  /** PEM; whoever signed client certificates. */
  readonly ca: string;
  /** PEM; certificates that hold no more. */
  readonly crl: string | null;
  /** Names all of this, to tell whether it still is what the listener asks for. */
  readonly authority: string;
}

export interface TlsEndsOptions {
  readonly minVersion: "1.2" | "1.3";
  readonly protocols: readonly string[];
  readonly clientAuth: ClientAuth | null;
  /** Takes over a connection whose handshake is done. */
  accepted(socket: ClientSocket, facts: ConnectionFacts): SocketOwner;
  refused(reason: string, address: string): void;
  /** A handshake of a client was done, or failed. */
  shaken?(isDone: boolean): void;
}

/** Seconds in which a handshake must be done; a connection that is not the front's gets no further. */
const HANDSHAKE_S = 12;

interface End extends Destination {
  stop(): void;
}

type EndSocket = Socket<SocketOwner | null> & ClientSocket;

export class TlsEnds {
  readonly #options: TlsEndsOptions;
  readonly #ends = new Map<EndCertificate, End>();
  readonly #open = new Set<EndSocket>();

  constructor(options: TlsEndsOptions) {
    this.#options = options;
  }

  /** The server that presents the certificate, opened when first asked for. Throws when the settings cannot be used. */
  find(certificate: EndCertificate): Destination {
    const known = this.#ends.get(certificate);
    if (known !== undefined) return known;
    const end = this.#listen(certificate);
    this.#ends.set(certificate, end);
    return end;
  }

  /** Closes the servers of certificates that are not wanted any more; their connections go on. */
  keep(isWanted: (certificate: EndCertificate) => boolean): void {
    for (const [certificate, end] of this.#ends) {
      // Somebody may be on the way to it.
      if (isWanted(certificate) || end.known.size > 0) continue;
      end.stop();
      this.#ends.delete(certificate);
    }
  }

  /** Accepts no more. */
  stop(): void {
    for (const end of this.#ends.values()) end.stop();
    this.#ends.clear();
  }

  /** Closes everything at once. */
  close(): void {
    this.stop();
    for (const socket of this.#open) socket.terminate();
  }

  #listen({ cert, key }: EndCertificate): End {
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
        ...(protocols.length === 0 ? {} : { ALPNProtocols: wireForm(protocols) }),
        ...(clientAuth === null ? {} : clientAuthOptions(clientAuth)),
      },
      socket: this.#handlers(known),
    } as unknown as TCPSocketListenOptions<SocketOwner | null>);
    return { port: server.port, known, stop: () => server.stop(false) };
  }

  #handlers(known: KnownConnections) {
    return {
      open: (socket: EndSocket) => {
        socket.data = null;
        this.#open.add(socket);
        socket.timeout(HANDSHAKE_S);
      },
      handshake: (socket: EndSocket, isDone: boolean) => {
        const peer = { address: socket.remoteAddress, port: socket.remotePort };
        const facts = known.find(peer);
        // Somebody else on this machine, who must not be able to get around the front.
        if (facts === null) return void socket.terminate();
        this.#options.shaken?.(isDone);
        const shown = isDone ? this.#judge(socket, facts) : "the TLS handshake failed";
        if (typeof shown === "string") {
          this.#options.refused(shown, facts.address);
          socket.terminate();
          return;
        }
        socket.timeout(0);
        socket.data = this.#options.accepted(socket, shown);
      },
      data: (socket: EndSocket, chunk: Buffer) => socket.data?.clientSent(chunk),
      drain: (socket: EndSocket) => socket.data?.clientDrained(),
      end: (socket: EndSocket) => {
        if (socket.data === null) socket.terminate();
        else socket.data.clientEnded();
      },
      timeout: (socket: EndSocket) => {
        if (socket.data === null) socket.terminate();
      },
      close: (socket: EndSocket, error: unknown) => {
        this.#open.delete(socket);
        socket.data?.clientClosed(error instanceof Error);
      },
      error: (socket: EndSocket) => socket.data?.clientClosed(true),
    };
  }

  /** What is known after the handshake, or why the client gets no further. */
  #judge(socket: EndSocket, facts: ConnectionFacts): ConnectionFacts | string {
    const tlsVersion = socket.getTLSVersion();
    const { clientAuth } = this.#options;
    if (clientAuth === null) return { ...facts, tlsVersion };
    // The certificate was chosen by the name that the front read; the handshake must have been about the same one.
    if (nameOf(socket) !== facts.serverName) return "the TLS handshake was for another name";
    const raw = certificateOf(socket);
    if (raw === null && clientAuth.mode === "require") return "the client showed no certificate";
    if (raw !== null && !socket.authorized) return "the client's certificate does not hold";
    return {
      ...facts,
      tlsVersion,
      clientAuthority: clientAuth.authority,
      clientCertificate: raw,
      clientCertificateField: raw === null ? "" : `client-cert: :${raw.toString("base64")}:\r\n`,
    };
  }
}

/** Without tickets every connection shows its certificate anew: none rests on what was shown elsewhere or earlier. */
const clientAuthOptions = ({ mode, ca, crl }: ClientAuth) => ({
  ca,
  ...(crl === null ? {} : { crl }),
  requestCert: true,
  rejectUnauthorized: mode === "require",
  secureOptions: constants.SSL_OP_NO_TICKET,
});

/** RFC 7301 section 3.1: each name behind its length. */
function wireForm(protocols: readonly string[]): Buffer {
  return Buffer.concat(
    protocols.map((name) => Buffer.concat([Buffer.from([name.length]), Buffer.from(name)])),
  );
}

function nameOf(socket: EndSocket): string | null {
  const { getServername } = socket as unknown as {
    getServername?: () => string | false | undefined;
  };
  const name = getServername?.call(socket);
  return typeof name === "string" && name !== "" ? name.toLowerCase().replace(/\.$/, "") : null;
}

function certificateOf(socket: EndSocket): Buffer | null {
  const certificate = socket.getPeerCertificate() as { readonly raw?: Uint8Array } | undefined;
  return certificate?.raw === undefined ? null : Buffer.from(certificate.raw);
}
