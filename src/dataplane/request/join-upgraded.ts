// Joins a client with a target that has sent 101; knows no handshake and no frame.
import { formatEndpoint } from "../../net/address.ts";
import { failures, type ProxyError } from "../error.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { FieldPairs } from "../../http/fields.ts";
import { Tunnel } from "../server/tunnel.ts";
import type { ReservedBits } from "../websocket/frame-follower.ts";
import type { ClientRequest } from "./client-request.ts";
import { finish, upgradeFields, type UpstreamOutcome } from "./respond.ts";
import type { UpstreamAttempts } from "./upstream-attempts.ts";

/** What the target has sent, and what it means. */
export interface Upgraded {
  /** As the client gets it in Upgrade. */
  readonly protocol: string;
  /** The fields of the client's 101 besides those of the connection. */
  readonly fields: FieldPairs;
  /** The reserved bits of a WebSocket's frames; null: another protocol. */
  readonly frames: ReservedBits | null;
  readonly connection: UpstreamConnection;
  /** What follows the head. */
  readonly rest: Buffer;
}

/**
 * Ends the request when both sides have closed; an error when they could not be joined: then the caller responds. `release`: the
 * request no longer counts on its target.
 */
export function joinUpgraded(
  attempts: UpstreamAttempts & UpstreamOutcome,
  release: () => void,
  { protocol, fields, frames, connection, rest }: Upgraded,
): ProxyError | null {
  const { request, route, service, target, timeouts } = attempts;
  const { stream, worker } = request;
  try {
    const isOpen = worker.webSockets.open({
      path: { routeId: route.id, serviceId: service.id, targetId: target?.id ?? "" },
      protocol,
      client: clientOf(request),
      connection,
      rest,
      writeTimeout: timeouts.write,
      tunnel: stream.switchProtocols === undefined ? null : { frames },
      switchClient(session) {
        const all = upgradeFields(attempts, fields);
        return session instanceof Tunnel
          ? stream.switchProtocols?.(protocol, all, session) === true
          : stream.upgrade(all, session);
      },
      ended: (session) => {
        release();
        request.bytesIn += session.bytesIn;
        request.bytesOut = session.bytesOut;
        finish(request, 101);
      },
    });
    if (isOpen) return null;
  } catch (cause) {
    release();
    connection.destroy();
    return {
      ...failures.upgrade("the target sent a header field that is not valid"),
      cause,
    };
  }
  // Engines upgrade HTTP/1.1 only, and only open connections.
  release();
  connection.destroy();
  return stream.signal.aborted
    ? failures.clientGone
    : failures.badRequest("this connection cannot be upgraded");
}

/** Behind a trusted proxy the port is that proxy's. */
function clientOf(request: ClientRequest): string {
  const address = request.clientAddress();
  if (address !== request.peerAddress()) return address;
  return formatEndpoint({ address, port: request.peerPort });
}
