// Which protocol a connection speaks, and what serves it; knows no socket and no handshake.
import type { Listener } from "../../model/listener.ts";
import { Http1Connection } from "./http1/connection.ts";
import { Http2Connection } from "./http2/connection.ts";
import { PeerSocket } from "./peer-socket.ts";
import type { OpenConnection } from "./served-connection.ts";

interface Protocol {
  /** By ALPN (RFC 7301). */
  readonly name: string;
  readonly open: OpenConnection;
  isOffered(listener: Listener): boolean;
}

export const openHttp1: OpenConnection = (socket, owner) => new Http1Connection(socket, owner);

const openHttp2: OpenConnection = (socket, owner) =>
  new Http2Connection(new PeerSocket(socket), owner);

/** In the gateway's order of preference. */
const PROTOCOLS: readonly Protocol[] = [
  { name: "h2", open: openHttp2, isOffered: ({ http2 }) => http2 },
  { name: "http/1.1", open: openHttp1, isOffered: () => true },
  // What curl offers for HTTP/1.0.
  { name: "http/1.0", open: openHttp1, isOffered: () => true },
];

/** The protocol for a client that offers these by ALPN; null: it has none in common with the listener. */
export function chooseProtocol(
  offered: readonly string[],
  listener: Listener,
): { readonly name: string | null; readonly open: OpenConnection } | null {
  if (offered.length === 0) return { name: null, open: openHttp1 };
  return PROTOCOLS.find((one) => offered.includes(one.name) && one.isOffered(listener)) ?? null;
}
