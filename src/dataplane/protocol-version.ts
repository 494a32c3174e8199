// Which versions of HTTP and TLS a request came in, as far as that is certain: Bun's server tells nobody; knows no configuration.
import type { ConnectionFacts } from "./listener/connection-facts.ts";
import type { ListenerFacts } from "./listener/listener-facts.ts";

export interface VersionedRequest {
  readonly listener: ListenerFacts;
  readonly stream: { readonly connection: ConnectionFacts | null };
  readonly connectionField: string | null;
  readonly transferEncoding: string | null;
}

/** `2`, or `1` for HTTP/1.1 and 1.0, which nothing tells apart; empty: not known. */
export function httpVersionOf(request: VersionedRequest): string {
  const { listener, stream } = request;
  if (!listener.isMultiplexed) return "1";
  // RFC 9113 section 8.2.2 and RFC 9114 section 4.2 forbid them, and Bun refuses requests that have them.
  if (request.connectionField !== null || request.transferEncoding !== null) return "1";
  // A front has read what the client offers, and behind it the server takes HTTP/2 from everybody who offers that.
  const { connection } = stream;
  if (connection === null || listener.protocol === "http") return "";
  return connection.protocols.includes("h2") ? "2" : "1";
}

/** `TLSv1.3` or `TLSv1.2`; empty: none, or not known. */
export const tlsVersionOf = ({ listener, stream }: VersionedRequest): string =>
  stream.connection?.tlsVersion ?? (listener.isTls13 ? "TLSv1.3" : "");
