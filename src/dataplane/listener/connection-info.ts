// What the acceptor knows of a client's connection and the server behind it cannot see; knows no socket and no request.
import type { ClientHello } from "../../net/client-hello.ts";
import type { ProxiedEnds } from "../../net/proxy-protocol.ts";
import type { HeadWatch } from "./head-watch.ts";

/** Passed to the server behind the acceptor, whose own socket shows only 127.0.0.1. */
export interface ConnectionInfo {
  /** The client's address, from the PROXY header if there is one. */
  readonly address: string;
  readonly port: number;
  /** Where the client connected to. */
  readonly localAddress: string;
  readonly localPort: number;
  /** TLS server name (SNI) in lower case, without a trailing dot; null without one. */
  readonly serverName: string | null;
  /** ALPN protocols that the client offered. */
  readonly protocols: readonly string[];
  /** `TLSv1.3`, negotiated or to be negotiated; null without TLS. */
  readonly tlsVersion: string | null;
  /** The line `client-cert: ...` (RFC 9440) with its CRLF; empty without a client certificate. */
  readonly clientCertificateField: string;
  /** DER; null without a client certificate. */
  readonly clientCertificate: Uint8Array | null;
  /** The settings that the certificate was verified with, see `clientAuthKey`; null: none was requested. */
  readonly clientAuthKey: string | null;
  /** Times the request heads; null where TLS ends behind the acceptor, which then sees no heads. */
  readonly heads: HeadWatch | null;
  /** The client must open another connection, because the other engine now serves the name: the acceptor closes this one. */
  isOutdated?: boolean;
}

/** The only address that the acceptor connects from. */
const LOOPBACK = "127.0.0.1";

/**
 * Connections that the acceptor has made to one inner server, by source port. Every server has a map of its own,
 * because the kernel may use one source port for connections to two servers.
 */
export class KnownConnections {
  readonly #byPort = new Map<number, ConnectionInfo>();

  get size(): number {
    return this.#byPort.size;
  }

  add(port: number, info: ConnectionInfo): void {
    this.#byPort.set(port, info);
  }

  delete(port: number): void {
    this.#byPort.delete(port);
  }

  /** Null for a connection of another program, which the server must close. */
  find(peer: { readonly address: string; readonly port: number } | null): ConnectionInfo | null {
    if (peer === null || peer.address !== LOOPBACK) return null;
    return this.#byPort.get(peer.port) ?? null;
  }
}

/** What is known before the TLS handshake. */
export function connectionInfo({
  ends,
  hello,
}: {
  readonly ends: ProxiedEnds;
  readonly hello: ClientHello | null;
}): ConnectionInfo {
  return {
    address: ends.source.address,
    port: ends.source.port,
    localAddress: ends.destination.address,
    localPort: ends.destination.port,
    serverName: hello?.serverName ?? null,
    protocols: hello?.protocols ?? [],
    // TLS may end behind the acceptor; all our servers negotiate the highest version offered.
    tlsVersion: hello === null ? null : hello.offersTls13 ? "TLSv1.3" : "TLSv1.2",
    clientCertificateField: "",
    clientCertificate: null,
    clientAuthKey: null,
    heads: null,
  };
}
