// A listener whose connections are looked at before a Bun.serve on 127.0.0.1 gets them; knows no route and no upstream.
import type { Server } from "bun";
import type { Listener } from "../../model/listener.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import { ACME_PROTOCOL, type OpenChallenges } from "../challenges.ts";
import type { Arrival, Ticket, Verdict } from "./arriving-connection.ts";
import type { SocketOwner } from "./carried-connection.ts";
import { CertificateIndex } from "./certificate-index.ts";
import { clientAuthOf } from "./client-auth.ts";
import { type ConnectionFacts, factsOf, KnownConnections } from "./connection-facts.ts";
import { Front } from "./front.ts";
import { type HttpListener, type ListenerContext, startHttpServer } from "../server/bun-server.ts";
import { fetchHandler } from "../server/bun-stream.ts";
import { HeadWatch } from "./head-watch.ts";
import { TlsEnds } from "./tls-ends.ts";

/** Whether the listener asks for something that Bun.serve cannot do by itself. `isShared`: stream routes take names away from it. */
export const needsFront = (listener: Listener, isShared: boolean): boolean =>
  isShared ||
  listener.client_auth !== "none" ||
  listener.strict_sni ||
  listener.proxy_protocol ||
  listener.max_connections > 0 ||
  listener.max_connections_per_address > 0;

export interface FrontContext extends ListenerContext {
  /** Counts connections; a refusal when there are too many. */
  admit(): Ticket | string;
  /** Milliseconds in which a client must send what decides where it goes. */
  prereadTimeout(): number;
  /** The stream route beside the listener that takes the name, as owner of the client's socket; null when none does. */
  adopt(arrival: Arrival): SocketOwner | null;
  refused(reason: string, address: string): void;
  /** Milliseconds for the head of a request; 0: Bun's. */
  headTimeoutMs(): number;
  readonly challenges: OpenChallenges;
  /** A TLS handshake of a client was done, or failed, where the front ends TLS. */
  shaken(isDone: boolean): void;
}

/** RFC 8446 section 6: an alert record, fatal, unrecognized_name. */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

/** Binds at once, beside the other workers on the same port. Throws the system's error. */
export function openFrontedListener(plan: ListenerPlan, context: FrontContext): HttpListener {
  const known = new KnownConnections();
  const server = serveBehind(plan, context, known);
  try {
    const { front, ends, proofs } = openFront(plan, context, {
      port: server.port ?? 0,
      known,
    });
    return {
      plan,
      isFronted: true,
      async stop() {
        await front.stop();
        ends?.stop();
        proofs.stop();
        await server.stop(false);
      },
      goAway: () => void server.stop(false),
      get pending() {
        return server.pendingRequests + server.pendingWebSockets;
      },
      async close() {
        void server.stop(false);
        await front.close();
        ends?.close();
        proofs.close();
        await server.stop(true);
      },
    };
  } catch (error) {
    void server.stop(true);
    throw error;
  }
}

/** Without reusePort: no other program may share the port and get our clients' bytes. */
function serveBehind(
  plan: ListenerPlan,
  context: FrontContext,
  known: KnownConnections,
): Server<unknown> {
  const endsTls = plan.listener.client_auth === "none";
  return startHttpServer({ ...plan, tls: endsTls ? plan.tls : null }, context, {
    hostname: "127.0.0.1",
    port: 0,
    fetch: fetchHandler(context.serve, (request, server) => {
      const facts = known.find(server.requestIP(request));
      facts?.heads?.began();
      return facts;
    }),
  });
}

function openFront(
  plan: ListenerPlan,
  context: FrontContext,
  behind: { readonly port: number; readonly known: KnownConnections },
): { readonly front: Front; readonly ends: TlsEnds | null; readonly proofs: TlsEnds } {
  const { listener, tls } = plan;
  const index = new CertificateIndex(context.certificates);
  const clientAuth = clientAuthOf(listener);
  const { admit, prereadTimeout, refused, challenges, shaken } = context;
  const proofs = proofEnds(refused);
  const ends =
    clientAuth === null
      ? null
      : new TlsEnds({
          minVersion: listener.tls_min_version,
          protocols: ["http/1.1"],
          clientAuth,
          accepted: (socket, facts) =>
            front.carrySocket(socket, {
              destination: behind,
              facts: watched(facts, context.headTimeoutMs()),
              early: Buffer.alloc(0),
              ended() {},
            }),
          refused,
          shaken,
        });
  // What cannot be used must refuse the change, not every client after it.
  if (ends !== null && tls !== null) ends.find(tls);
  const settle = (arrival: Arrival): Verdict => {
    const { serverName = null, protocols = [] } = arrival.hello ?? {};
    const proof = challenges.certificateFor(serverName, protocols);
    if (proof !== null) {
      proofs.keep((certificate) => challenges.isOpen(certificate));
      return front.carry(arrival, proofs.find(proof), factsOf(arrival));
    }
    const owner = context.adopt(arrival);
    if (owner !== null) return { owner, holdsTicket: false };
    const name = arrival.hello?.serverName ?? null;
    const certificate = index.find(name);
    if (certificate === null) challenges.missing(name);
    if (listener.strict_sni && certificate === null)
      return { refusal: "no certificate is there for the TLS name", alert: UNRECOGNIZED_NAME };
    const facts = factsOf(arrival);
    if (tls === null) return front.carry(arrival, behind, watched(facts, context.headTimeoutMs()));
    if (ends === null) return front.carry(arrival, behind, facts);
    return front.carry(arrival, ends.find(certificate ?? tls), facts);
  };
  const front: Front = new Front({
    address: listener.address,
    port: listener.port,
    trusts: listener.proxy_protocol ? compileCidrs(listener.trusted_proxies) : null,
    readsHello: tls !== null,
    admit,
    prereadTimeout,
    settle,
    refused,
  });
  return { front, ends, proofs };
}

/** Of a connection whose bytes the front can read. `timeoutMs` 0: the time-outs of Bun hold. */
const watched = (facts: ConnectionFacts, timeoutMs: number): ConnectionFacts =>
  timeoutMs === 0 ? facts : { ...facts, heads: new HeadWatch(performance.now(), timeoutMs) };

/** Where authorities see the certificate that proves a name. RFC 8737 section 3: nothing is said after the handshake. */
const proofEnds = (refused: FrontContext["refused"]): TlsEnds =>
  new TlsEnds({
    minVersion: "1.2",
    protocols: [ACME_PROTOCOL],
    clientAuth: null,
    accepted(socket) {
      socket.end();
      return { clientSent() {}, clientDrained() {}, clientEnded() {}, clientClosed() {} };
    },
    refused,
  });
