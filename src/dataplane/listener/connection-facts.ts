// What is known of a client's connection that arrives over a second one on this machine; knows no socket and no request.
import type { ClientHello } from "../../net/client-hello.ts";
import type { ProxiedEnds } from "../../net/proxy-protocol.ts";
import type { HeadWatch } from "./head-watch.ts";

/** What a server behind the front is told of a connection, because its own socket shows only the front. */
export interface ConnectionFacts {
  /** The client: its own address, or the one that a PROXY header named. */
  readonly address: string;
  readonly port: number;
  /** Where the client connected to. */
  readonly localAddress: string;
  readonly localPort: number;
  /** Lower-case name of the TLS handshake, without a trailing dot; null when there was none. */
  readonly serverName: string | null;
  /** Protocols that the client offered by ALPN. */
  readonly protocols: readonly string[];
  /** `TLSv1.3`, as it was agreed or as it will be; null without TLS. */
  readonly tlsVersion: string | null;
  /** The line `client-cert: ...` (RFC 9440) with its end; empty when the client showed no certificate. */
  readonly clientCertificateField: string;
  /** The certificate itself, DER; null when the client showed none. */
  readonly clientCertificate: Uint8Array | null;
  /** What client certificates were held against, see `clientAuthority`; null when none was asked for. */
  readonly clientAuthority: string | null;
  /** Times the heads of the connection's requests; null where the front cannot read its bytes, because TLS ends behind it. */
  readonly heads: HeadWatch | null;
}

/** The only address that the front connects from. */
const OWN_ADDRESS = "127.0.0.1";

/**
 * Connections that the front has made to one server on this machine, by their source port. Every server has a map of its own,
 * because the system may use one source port towards two servers at a time.
 */
export class KnownConnections {
  readonly #byPort = new Map<number, ConnectionFacts>();

  get size(): number {
    return this.#byPort.size;
  }

  add(port: number, facts: ConnectionFacts): void {
    this.#byPort.set(port, facts);
  }

  delete(port: number): void {
    this.#byPort.delete(port);
  }

  /** Null for a connection of somebody else, whose every byte is to be ignored. */
  find(peer: { readonly address: string; readonly port: number } | null): ConnectionFacts | null {
    if (peer === null || peer.address !== OWN_ADDRESS) return null;
    return this.#byPort.get(peer.port) ?? null;
  }
}

/** What is known before TLS ends. */
export function factsOf({
  ends,
  hello,
}: {
  readonly ends: ProxiedEnds;
  readonly hello: ClientHello | null;
}): ConnectionFacts {
  return {
    address: ends.source.address,
    port: ends.source.port,
    localAddress: ends.destination.address,
    localPort: ends.destination.port,
    serverName: hello?.serverName ?? null,
    protocols: hello?.protocols ?? [],
    // TLS may end behind the front, and every server of ours takes the newest version that is offered.
    tlsVersion: hello === null ? null : hello.offersTls13 ? "TLSv1.3" : "TLSv1.2",
    clientCertificateField: "",
    clientCertificate: null,
    clientAuthority: null,
    heads: null,
  };
}
