// The HTTP and TLS version of a request, as far as Bun's server lets the gateway know them; knows no configuration.
import type { ConnectionInfo } from "./listener/connection-info.ts";
import type { ListenerRuntime } from "./listener/listener-runtime.ts";

export interface VersionedRequest {
  readonly listener: ListenerRuntime;
  readonly stream: {
    readonly connection: ConnectionInfo | null;
    readonly httpVersion?: string | null;
  };
  readonly known: {
    readonly connectionField: string | null;
    readonly transferEncoding: string | null;
  };
}

/** `3`, `2`, `1.1`, `1.0`, or `1` for HTTP/1.1 and 1.0, which Bun.serve does not distinguish; empty: unknown. */
export function httpVersionOf(request: VersionedRequest): string {
  const { listener, stream } = request;
  if (stream.httpVersion != null) return stream.httpVersion;
  if (!listener.isMultiplexed) return "1";
  // RFC 9113 section 8.2.2 and RFC 9114 section 4.2 forbid them, and Bun refuses requests that have them.
  const { connectionField, transferEncoding } = request.known;
  return connectionField !== null || transferEncoding !== null ? "1" : "";
}

/** For Via, which must name one (RFC 9110 section 7.6.3), where the engine does not know it. */
export const likelyHttpVersionOf = (request: VersionedRequest): string =>
  httpVersionOf(request) === "2" ? "2" : "1.1";

/** `TLSv1.3` or `TLSv1.2`; empty: none, or unknown. */
export const tlsVersionOf = ({ listener, stream }: VersionedRequest): string =>
  stream.connection?.tlsVersion ?? (listener.isTls13 ? "TLSv1.3" : "");
