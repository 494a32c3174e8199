// What is known of a client's connection; knows no socket and no request.
import type { ClientHello } from "../../net/client-hello.ts";
import type { ProxiedEnds } from "../../net/proxy-protocol.ts";

export interface ConnectionInfo {
  /** The client's address, from the PROXY header if there is one. */
  readonly address: string;
  readonly port: number;
  /** Where the client connected to. */
  readonly localAddress: string;
  readonly localPort: number;
  /** TLS server name (SNI) in lower case, without a trailing dot; null without one. */
  readonly serverName: string | null;
  /** `TLSv1.3`, negotiated or to be negotiated; null without TLS. */
  readonly tlsVersion: string | null;
  /** The line `Client-Cert: ...` (RFC 9440) with its CRLF; empty without a client certificate. */
  readonly clientCertificateField: string;
  /** DER; null without a client certificate. */
  readonly clientCertificate: Uint8Array | null;
  /** The settings that the certificate was verified with, see `clientAuthKey`; null: none was requested. */
  readonly clientAuthKey: string | null;
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
    tlsVersion: hello === null ? null : hello.offersTls13 ? "TLSv1.3" : "TLSv1.2",
    clientCertificateField: "",
    clientCertificate: null,
    clientAuthKey: null,
  };
}
