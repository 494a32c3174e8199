// The Bun.serve behind an acceptor, on 127.0.0.1, and TLS in front of it where it asks for client certificates; knows no route.
import type { Server } from "bun";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import { startHttpServer } from "../server/bun-server.ts";
import { fetchHandler } from "../server/bun-stream.ts";
import type { Acceptor } from "./acceptor.ts";
import type { AcceptorContext, ConnectionServer } from "./connection-server.ts";
import { clientAuthOf } from "./client-auth.ts";
import { type ConnectionInfo, connectionInfo, KnownConnections } from "./connection-info.ts";
import { HeadWatch } from "./head-watch.ts";
import { TlsTerminators, type TlsTerminatorsOptions } from "./tls-terminators.ts";

/** `acceptor` is called once connections arrive. Throws where TLS does not accept a certificate. */
export function openStandardServer(
  plan: ListenerPlan,
  context: AcceptorContext,
  acceptor: () => Acceptor,
): ConnectionServer {
  const { tls } = plan;
  const known = new KnownConnections();
  const server = serveBehind(plan, context, known);
  const behind = { port: server.port ?? 0, known };
  const withHeadWatch = (info: ConnectionInfo): ConnectionInfo => {
    const timeoutMs = context.headTimeoutMs();
    // 0: only Bun's own timeouts apply.
    return timeoutMs === 0 ? info : { ...info, heads: new HeadWatch(performance.now(), timeoutMs) };
  };
  const terminators = terminatorsOf(plan, context, (socket, info) =>
    acceptor().tunnelSocket(socket, {
      destination: behind,
      info: withHeadWatch(info),
      buffered: Buffer.alloc(0),
      ended() {},
    }),
  );
  try {
    // Fails here, so that a bad certificate rejects the change and not every client.
    if (tls !== null) terminators?.find(tls);
  } catch (error) {
    void server.stop(true);
    throw error;
  }
  return {
    serve(preread, certificate) {
      const info = connectionInfo(preread);
      // The acceptor can read the bytes of cleartext connections only.
      if (tls === null) return acceptor().tunnel(preread, behind, withHeadWatch(info));
      const destination = terminators === null ? behind : terminators.find(certificate ?? tls);
      return acceptor().tunnel(preread, destination, info);
    },
    goAway: () => void server.stop(false),
    get pending() {
      return server.pendingRequests + server.pendingWebSockets;
    },
    stop() {
      terminators?.stop();
      return server.stop(false);
    },
    close() {
      terminators?.close();
      return server.stop(true);
    },
  };
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

/** Null: Bun.serve terminates TLS, or there is none. */
function terminatorsOf(
  { listener }: ListenerPlan,
  { refused, onHandshake }: AcceptorContext,
  accepted: TlsTerminatorsOptions["accepted"],
): TlsTerminators | null {
  const clientAuth = clientAuthOf(listener);
  if (clientAuth === null) return null;
  const minVersion = listener.tls_min_version;
  const protocols = ["http/1.1"];
  return new TlsTerminators({ minVersion, protocols, clientAuth, accepted, refused, onHandshake });
}
