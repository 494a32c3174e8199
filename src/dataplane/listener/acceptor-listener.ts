// A listener with an acceptor in front of its Bun.serve, which listens on 127.0.0.1; knows no route and no upstream.
import type { Server } from "bun";
import type { Listener } from "../../model/listener.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { CertificatePlan, ListenerPlan } from "../../snapshot/snapshot.ts";
import { ACME_PROTOCOL, type OpenChallenges } from "../challenges.ts";
import type { Preread, ConnectionSlot, AcceptDecision } from "./pending-connection.ts";
import type { SocketOwner } from "./loopback-tunnel.ts";
import { CertificateIndex } from "./certificate-index.ts";
import { clientAuthOf } from "./client-auth.ts";
import { type ConnectionInfo, connectionInfo, KnownConnections } from "./connection-info.ts";
import { Acceptor } from "./acceptor.ts";
import { type HttpListener, type ListenerContext, startHttpServer } from "../server/bun-server.ts";
import { fetchHandler } from "../server/bun-stream.ts";
import { HeadWatch } from "./head-watch.ts";
import { TlsTerminators } from "./tls-terminators.ts";

/** Whether the listener needs what Bun.serve cannot do. `isShared`: stream routes match TLS names at its port. */
export const needsAcceptor = (listener: Listener, isShared: boolean): boolean =>
  isShared ||
  listener.client_auth !== "none" ||
  listener.strict_sni ||
  listener.proxy_protocol ||
  listener.max_connections > 0 ||
  listener.max_connections_per_address > 0;

export interface AcceptorContext extends ListenerContext {
  /** Counts a connection; the reason when there are too many. */
  admit(): ConnectionSlot | string;
  /** Milliseconds in which a client must send its PROXY header and ClientHello. */
  prereadTimeout(): number;
  /** Hands the socket to the stream route at the port that matches the name; null when none does. */
  adopt(preread: Preread): SocketOwner | null;
  refused(reason: string, address: string): void;
  /** Milliseconds for the head of a request; 0: Bun's own timeout. */
  headTimeoutMs(): number;
  readonly challenges: OpenChallenges;
  /** A TLS handshake succeeded or failed, where the acceptor terminates TLS. */
  onHandshake(isDone: boolean): void;
}

/** RFC 8446 section 6: an alert record, fatal, unrecognized_name. */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

/** Binds with SO_REUSEPORT beside the other workers. Throws the system's error. */
export function openAcceptorListener(plan: ListenerPlan, context: AcceptorContext): HttpListener {
  const known = new KnownConnections();
  const server = serveBehind(plan, context, known);
  try {
    const { acceptor, terminators, challengeTerminators } = openAcceptor(plan, context, {
      port: server.port ?? 0,
      known,
    });
    return {
      plan,
      hasAcceptor: true,
      async stop() {
        await acceptor.stop();
        terminators?.stop();
        challengeTerminators.stop();
        await server.stop(false);
      },
      goAway: () => void server.stop(false),
      get pending() {
        return server.pendingRequests + server.pendingWebSockets;
      },
      async close() {
        void server.stop(false);
        await acceptor.close();
        terminators?.close();
        challengeTerminators.close();
        await server.stop(true);
      },
    };
  } catch (error) {
    void server.stop(true);
    throw error;
  }
}

/** Without reusePort, so that no other program can share the port and receive our clients' bytes. */
function serveBehind(
  plan: ListenerPlan,
  context: AcceptorContext,
  known: KnownConnections,
): Server<unknown> {
  const terminatesTls = plan.listener.client_auth === "none";
  return startHttpServer({ ...plan, tls: terminatesTls ? plan.tls : null }, context, {
    hostname: "127.0.0.1",
    port: 0,
    fetch: fetchHandler(context.serve, (request, server) => {
      const info = known.find(server.requestIP(request));
      info?.heads?.began();
      return info;
    }),
  });
}

function openAcceptor(
  plan: ListenerPlan,
  context: AcceptorContext,
  behind: { readonly port: number; readonly known: KnownConnections },
): {
  readonly acceptor: Acceptor;
  readonly terminators: TlsTerminators | null;
  readonly challengeTerminators: TlsTerminators;
} {
  const { listener, tls } = plan;
  const index = new CertificateIndex(context.certificates);
  const clientAuth = clientAuthOf(listener);
  const { admit, prereadTimeout, refused, onHandshake } = context;
  const challengeTerminators = challengeTerminatorsOf(refused);
  const terminators =
    clientAuth === null
      ? null
      : new TlsTerminators({
          minVersion: listener.tls_min_version,
          protocols: ["http/1.1"],
          clientAuth,
          accepted: (socket, info) =>
            acceptor.tunnelSocket(socket, {
              destination: behind,
              info: withHeadWatch(info, context.headTimeoutMs()),
              buffered: Buffer.alloc(0),
              ended() {},
            }),
          refused,
          onHandshake,
        });
  // Fails here, so that a bad certificate rejects the change and not every client.
  if (terminators !== null && tls !== null) terminators.find(tls);
  const decide = (preread: Preread): AcceptDecision => {
    const certificate = index.find(preread.hello?.serverName ?? null);
    const entry = { listener, context, acceptor, challengeTerminators, certificate };
    const decision = decideBefore(preread, entry);
    if (decision !== null) return decision;
    const info = connectionInfo(preread);
    if (tls === null)
      return acceptor.tunnel(preread, behind, withHeadWatch(info, context.headTimeoutMs()));
    if (terminators === null) return acceptor.tunnel(preread, behind, info);
    return acceptor.tunnel(preread, terminators.find(certificate ?? tls), info);
  };
  const acceptor: Acceptor = new Acceptor({
    address: listener.address,
    port: listener.port,
    trusts: listener.proxy_protocol ? compileCidrs(listener.trusted_proxies) : null,
    readsHello: tls !== null,
    admit,
    prereadTimeout,
    decide,
    refused,
  });
  return { acceptor, terminators, challengeTerminators };
}

/** What decides on a connection before the listener's server gets it. */
interface EntryChecks {
  readonly listener: Listener;
  readonly context: AcceptorContext;
  readonly acceptor: Acceptor;
  readonly challengeTerminators: TlsTerminators;
  /** The one that matches the server name; null: none. */
  readonly certificate: CertificatePlan | null;
}

/** Routes CA validations and streams at the same port, and refuses unknown names; null: the listener's server serves it. */
export function decideBefore(preread: Preread, checks: EntryChecks): AcceptDecision | null {
  const { listener, context, acceptor, challengeTerminators, certificate } = checks;
  const { serverName = null, protocols = [] } = preread.hello ?? {};
  const challenge = context.challenges.certificateFor(serverName, protocols);
  if (challenge !== null) {
    challengeTerminators.closeUnused((one) => context.challenges.isOpen(one));
    const destination = challengeTerminators.find(challenge);
    return acceptor.tunnel(preread, destination, connectionInfo(preread));
  }
  const owner = context.adopt(preread);
  if (owner !== null) return { owner, ownsSlot: false };
  if (certificate === null) context.challenges.missing(serverName);
  if (listener.strict_sni && certificate === null)
    return { refusal: "no certificate matches the TLS server name", alert: UNRECOGNIZED_NAME };
  return null;
}

/** For connections whose bytes the acceptor can read. `timeoutMs` 0: only Bun's own timeouts apply. */
const withHeadWatch = (info: ConnectionInfo, timeoutMs: number): ConnectionInfo =>
  timeoutMs === 0 ? info : { ...info, heads: new HeadWatch(performance.now(), timeoutMs) };

/** Present tls-alpn-01 challenge certificates to CAs and close after the handshake (RFC 8737 section 3). */
export const challengeTerminatorsOf = (refused: AcceptorContext["refused"]): TlsTerminators =>
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
