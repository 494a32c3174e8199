// The full engine behind an acceptor, which hands it the sockets themselves; knows no route and no upstream.
import { constants } from "node:crypto";
import type { SecureContext, TLSSocket } from "node:tls";
import type { Listener } from "../../model/listener.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import type { ConnectionBounds } from "../server/full-connection.ts";
import { FullEngine } from "../server/full-engine.ts";
import type { AcceptorContext, ConnectionServer } from "./connection-server.ts";
import { clientAuthOf } from "./client-auth.ts";
import { connectionInfo } from "./connection-info.ts";
import { idleTimeoutOf } from "./listener-runtime.ts";
import {
  type ClientAuth,
  type TerminatorCertificate,
  type TlsTermination,
  verifyHandshake,
} from "./tls-terminators.ts";

/** Throws where TLS does not accept the default certificate. */
export function openFullServer(plan: ListenerPlan, context: AcceptorContext): ConnectionServer {
  const { refused, onHandshake, serve, websocket } = context;
  const contexts = new TlsContexts(plan.listener);
  // Fails here, so that a bad certificate rejects the change and not every client.
  if (plan.tls !== null) contexts.find(plan.tls);
  const engine = new FullEngine({
    serve,
    websocket,
    refused,
    onHandshake,
    bounds: () => boundsOf(context.livePlan().listener, context),
  });
  return {
    serve(preread, certificate) {
      const { socket, buffered, slot } = preread;
      const tls = certificate ?? context.livePlan().tls ?? plan.tls;
      const owner = engine.accept({
        socket,
        buffered,
        info: connectionInfo(preread),
        tls: plan.tls === null || tls === null ? null : contexts.find(tls),
        ended: () => slot.release(),
      });
      return { owner, ownsSlot: true };
    },
    goAway: () => engine.goAway(),
    get pending() {
      return engine.pending;
    },
    stop: () => engine.ended(),
    close: () => engine.close(),
  };
}

/** 0 for `headTimeout` as in the settings: no limit of the gateway's. */
function boundsOf(listener: Listener, context: AcceptorContext): ConnectionBounds {
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
