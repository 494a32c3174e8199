// A listener whose acceptor hands its connections to the full engine; knows no route and no upstream.
import { constants } from "node:crypto";
import type { SecureContext, TLSSocket } from "node:tls";
import type { Listener } from "../../model/listener.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import type { HttpListener } from "../server/bun-server.ts";
import type { ConnectionBounds } from "../server/full-connection.ts";
import { FullEngine } from "../server/full-engine.ts";
import { Acceptor } from "./acceptor.ts";
import { type AcceptorContext, challengeTerminatorsOf, decideBefore } from "./acceptor-listener.ts";
import type { CertificateIndex } from "./certificate-index.ts";
import { clientAuthOf } from "./client-auth.ts";
import { connectionInfo } from "./connection-info.ts";
import { idleTimeoutOf } from "./listener-runtime.ts";
import type { AcceptDecision, Preread } from "./pending-connection.ts";
import {
  type ClientAuth,
  type TerminatorCertificate,
  type TlsTermination,
  verifyHandshake,
} from "./tls-terminators.ts";

export interface FullListenerContext extends AcceptorContext {
  /** The live version's: a new certificate or limit holds for the next connection. */
  livePlan(): ListenerPlan;
  liveCertificates(): CertificateIndex;
  /** Milliseconds; 0: no limit. */
  responseWriteTimeout(): number;
}

/** Binds with SO_REUSEPORT beside the other workers. Throws the system's error. */
export function openFullListener(plan: ListenerPlan, context: FullListenerContext): HttpListener {
  const { refused, onHandshake, serve, websocket } = context;
  const engine = new FullEngine({
    serve,
    websocket,
    refused,
    onHandshake,
    bounds: () => boundsOf(context.livePlan().listener, context),
  });
  const challengeTerminators = challengeTerminatorsOf(refused);
  const acceptor = openAcceptor(plan, context, { engine, challengeTerminators });
  return {
    plan,
    hasAcceptor: true,
    async stop() {
      const stopped = acceptor.stop();
      engine.goAway();
      await stopped;
      challengeTerminators.stop();
      await engine.ended();
    },
    goAway: () => engine.goAway(),
    get pending() {
      return engine.pending;
    },
    async close() {
      await acceptor.close();
      challengeTerminators.close();
      await engine.close();
    },
  };
}

function openAcceptor(
  plan: ListenerPlan,
  context: FullListenerContext,
  {
    engine,
    challengeTerminators,
  }: {
    readonly engine: FullEngine;
    readonly challengeTerminators: ReturnType<typeof challengeTerminatorsOf>;
  },
): Acceptor {
  const { listener, tls } = plan;
  const contexts = new TlsContexts(listener);
  // Fails here, so that a bad certificate rejects the change and not every client.
  if (tls !== null) contexts.find(tls);
  const decide = (preread: Preread): AcceptDecision => {
    const certificate = context.liveCertificates().find(preread.hello?.serverName ?? null);
    const checks = { listener, context, acceptor, challengeTerminators, certificate };
    const decision = decideBefore(preread, checks);
    if (decision !== null) return decision;
    const { socket, buffered, slot } = preread;
    const fallback = context.livePlan().tls ?? tls;
    const owner = engine.accept({
      socket,
      buffered,
      info: connectionInfo(preread),
      tls: fallback === null ? null : contexts.find(certificate ?? fallback),
      ended: () => slot.release(),
    });
    return { owner, ownsSlot: true };
  };
  const acceptor: Acceptor = new Acceptor({
    address: listener.address,
    port: listener.port,
    trusts: listener.proxy_protocol ? compileCidrs(listener.trusted_proxies) : null,
    readsHello: tls !== null,
    admit: context.admit,
    prereadTimeout: context.prereadTimeout,
    decide,
    refused: context.refused,
  });
  return acceptor;
}

/** 0 for `headTimeout` as in the settings: no limit of the gateway's. */
function boundsOf(listener: Listener, context: FullListenerContext): ConnectionBounds {
  return {
    offersHttp2: listener.http2,
    maxStreams: listener.max_concurrent_streams,
    handshakeTimeout: context.prereadTimeout(),
    headTimeout: context.headTimeoutMs(),
    idleTimeout: idleTimeoutOf(listener) * 1000,
    writeTimeout: context.responseWriteTimeout() || Number.POSITIVE_INFINITY,
    maxAge: listener.max_connection_age * 1000,
  };
}

/** How TLS ends with each certificate. A session ticket of one certificate is unknown to the others. */
class TlsContexts {
  readonly #minVersion: "TLSv1.2" | "TLSv1.3";
  readonly #clientAuth: ClientAuth | null;
  readonly #byCertificate = new WeakMap<TerminatorCertificate, TlsTermination>();

  constructor(listener: Listener) {
    this.#minVersion = listener.tls_min_version === "1.3" ? "TLSv1.3" : "TLSv1.2";
    this.#clientAuth = clientAuthOf(listener);
  }

  /** Throws when TLS does not accept the certificate. */
  find(certificate: TerminatorCertificate): TlsTermination {
    let found = this.#byCertificate.get(certificate);
    if (found === undefined) {
      const clientAuth = this.#clientAuth;
      found = {
        context: this.#contextOf(certificate),
        requestsCertificate: clientAuth !== null,
        requiresCertificate: clientAuth?.mode === "require",
        verify: (socket, info) => verifyHandshake(handshakeOf(socket), info, clientAuth),
      };
      this.#byCertificate.set(certificate, found);
    }
    return found;
  }

  #contextOf({ cert, key }: TerminatorCertificate): SecureContext {
    const clientAuth = this.#clientAuth;
    return process.getBuiltinModule("node:tls").createSecureContext({
      cert,
      key,
      minVersion: this.#minVersion,
      ...(clientAuth === null ? {} : { ca: clientAuth.ca }),
      ...(clientAuth === null || clientAuth.crl === null ? {} : { crl: clientAuth.crl }),
      // Without session tickets every connection presents its certificate again.
      ...(clientAuth === null ? {} : { secureOptions: constants.SSL_OP_NO_TICKET }),
    });
  }
}

const handshakeOf = (socket: TLSSocket) => ({
  tlsVersion: socket.getProtocol(),
  serverName: socket.servername,
  isAuthorized: socket.authorized,
  peerCertificate: socket.getPeerCertificate(),
});
