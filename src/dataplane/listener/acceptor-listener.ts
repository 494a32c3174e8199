// A listener with an acceptor, which routes each connection to a stream route or a server of this worker; knows no request.
import type { Listener } from "../../model/listener.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import type { HttpListener } from "../server/bun-server.ts";
import { ACME_PROTOCOL } from "../challenges.ts";
import { Acceptor } from "./acceptor.ts";
import { connectionInfo } from "./connection-info.ts";
import type { AcceptorContext, ConnectionServer } from "./connection-server.ts";
import { openFullServer } from "./full-server.ts";
import type { AcceptDecision, Preread } from "./pending-connection.ts";
import { openStandardServer } from "./standard-server.ts";
import { TlsTerminators } from "./tls-terminators.ts";

/** Whether the listener needs what Bun.serve cannot do. `isShared`: stream routes match TLS names at its port. */
export const needsAcceptor = (listener: Listener, isShared: boolean): boolean =>
  isShared ||
  listener.engine !== "standard" ||
  listener.shared_engines ||
  listener.client_auth !== "none" ||
  listener.strict_sni ||
  listener.proxy_protocol ||
  listener.max_connections > 0 ||
  listener.max_connections_per_address > 0;

/** RFC 8446 section 6: an alert record, fatal, unrecognized_name. */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

/** Binds with SO_REUSEPORT beside the other workers. Throws the system's error. */
export function openAcceptorListener(plan: ListenerPlan, context: AcceptorContext): HttpListener {
  const { engine, shared_engines: hasBoth } = plan.listener;
  const full = engine === "full" || hasBoth ? openFullServer(plan, context) : null;
  const standard = engine === "full" ? null : openStandardServer(plan, context, () => acceptor);
  const servers = [standard, full].filter((server) => server !== null);
  const serverOf = (name: string | null): ConnectionServer | null =>
    standard === null || (hasBoth && context.needsFullEngine(name)) ? full : standard;
  const challengeTerminators = challengeTerminatorsOf(context.refused);
  const acceptor: Acceptor = openAcceptor(plan, context, {
    serverOf,
    challengeTerminators,
    servers,
  });
  return {
    plan,
    hasAcceptor: true,
    async stop() {
      const stopped = acceptor.stop();
      // Bun.serve's connections end with their clients' requests or idle timeout.
      full?.goAway();
      await stopped;
      challengeTerminators.stop();
      await Promise.all(servers.map((server) => server.stop()));
    },
    goAway() {
      for (const server of servers) server.goAway();
    },
    get pending() {
      return servers.reduce((pending, server) => pending + server.pending, 0);
    },
    async close() {
      standard?.goAway();
      await acceptor.close();
      challengeTerminators.close();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

interface Routing {
  readonly serverOf: (serverName: string | null) => ConnectionServer | null;
  readonly challengeTerminators: TlsTerminators;
  readonly servers: readonly ConnectionServer[];
}

function openAcceptor(
  { listener, tls }: ListenerPlan,
  context: AcceptorContext,
  { serverOf, challengeTerminators, servers }: Routing,
): Acceptor {
  const { admit, prereadTimeout, refused, challenges } = context;
  const decide = (preread: Preread, acceptor: Acceptor): AcceptDecision => {
    const { serverName = null, protocols = [] } = preread.hello ?? {};
    const challenge = challenges.certificateFor(serverName, protocols);
    if (challenge !== null) {
      challengeTerminators.closeUnused((one) => challenges.isOpen(one));
      const destination = challengeTerminators.find(challenge);
      return acceptor.tunnel(preread, destination, connectionInfo(preread));
    }
    const owner = context.adopt(preread);
    if (owner !== null) return { owner, ownsSlot: false };
    const certificate = context.liveCertificates().find(serverName);
    if (certificate === null) challenges.missing(serverName);
    const server = serverOf(serverName);
    if (server === null || (listener.strict_sni && certificate === null))
      return { refusal: "no certificate matches the TLS server name", alert: UNRECOGNIZED_NAME };
    return server.serve(preread, certificate);
  };
  try {
    return new Acceptor({
      address: listener.address,
      port: listener.port,
      trusts: listener.proxy_protocol ? compileCidrs(listener.trusted_proxies) : null,
      readsHello: tls !== null,
      admit,
      prereadTimeout,
      decide,
      refused,
    });
  } catch (error) {
    for (const server of servers) void server.close();
    throw error;
  }
}

/** Present tls-alpn-01 challenge certificates to CAs and close after the handshake (RFC 8737 section 3). */
const challengeTerminatorsOf = (refused: AcceptorContext["refused"]): TlsTerminators =>
  new TlsTerminators({
    minVersion: "1.2",
    protocols: [ACME_PROTOCOL],
    clientAuth: null,
    accepted(socket) {
      socket.end();
      return { clientSent() {}, clientDrained() {}, clientEnded() {}, clientClosed() {} };
    },
    refused,
  });
