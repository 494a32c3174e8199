// One Bun.serve of one worker; knows no route and no upstream.
import type { Server, WebSocketHandler } from "bun";
import { constants } from "node:crypto";
import type { Listener } from "../../model/listener.ts";
import type { CertificatePlan, ListenerPlan } from "../../snapshot/snapshot.ts";
import { idleTimeoutOf } from "../listener/listener-runtime.ts";
import { fetchHandler, type StreamHandler } from "./bun-stream.ts";

/** Clients' connections and the HTTP/2 streams on them. */
export interface ClientCounts {
  http1: number;
  http2: number;
  streams: number;
}

export interface HttpListener {
  readonly plan: ListenerPlan;
  /** A version was activated. */
  update?(): void;
  /** Stops accepting; requests and WebSockets go on. Resolves when the last one has ended. */
  stop(): Promise<void>;
  /** After `stop`: keep-alive connections close after their current request. */
  goAway(): void;
  /** Requests and WebSockets in progress. */
  readonly pending: number;
  /** Adds its connections; Bun and Node do not say how many there are. */
  countClients?(counts: ClientCounts): void;
  /** Closes everything at once. */
  close(): Promise<void>;
}

/** What a listener needs beside its plan. */
export interface ListenerContext {
  readonly serve: StreamHandler;
  readonly websocket: WebSocketHandler<never>;
  /** Ignored by plain listeners. */
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
}

/** Binds with SO_REUSEPORT beside the other workers. Throws the system's error. */
export const openHttpListener = (plan: ListenerPlan, context: ListenerContext): HttpListener =>
  openServer(plan, context, {
    protocols: plan.listener.http3 && plan.tls !== null ? { http3: true } : {},
    httpVersion: null,
  });

/** The same for HTTP/3 alone, on UDP, beside a TCP socket of ours. */
export const openHttp3Listener = (plan: ListenerPlan, context: ListenerContext): HttpListener =>
  openServer(plan, context, {
    protocols: { http3: true, http1: false, http2: false },
    httpVersion: "3",
  });

function openServer(
  plan: ListenerPlan,
  context: ListenerContext,
  { protocols, httpVersion }: { readonly protocols: object; readonly httpVersion: string | null },
): HttpListener {
  const server = startHttpServer(plan, context, {
    hostname: plan.listener.address,
    port: plan.listener.port,
    reusePort: true,
    ...protocols,
    fetch: fetchHandler(context.serve, httpVersion),
  });
  return {
    plan,
    stop: () => server.stop(false),
    // Bun's `stop` does so already.
    goAway() {},
    get pending() {
      return server.pendingRequests + server.pendingWebSockets;
    },
    close: () => server.stop(true),
  };
}

/** A Bun.serve with the listener's settings. */
function startHttpServer(
  { listener, tls }: ListenerPlan,
  { certificates, websocket }: ListenerContext,
  binding: object,
): Server<unknown> {
  const options = {
    development: false,
    http2: listener.http2,
    idleTimeout: idleTimeoutOf(listener),
    // The gateway enforces limits itself: Bun's cannot change at run time and send no error page.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    ...(tls === null ? {} : { tls: tlsOptions(listener, tls, [...certificates.values()]) }),
    websocket,
    ...binding,
  };
  return Bun.serve(options as unknown as Parameters<typeof Bun.serve>[0]) as Server<unknown>;
}

/** The default certificate first, for clients without a known server name; Bun prefers an exact name to a wildcard. */
function tlsOptions(
  listener: Listener,
  fallback: NonNullable<ListenerPlan["tls"]>,
  certificates: readonly CertificatePlan[],
) {
  const common = {
    minVersion: listener.tls_min_version === "1.3" ? 0x0304 : 0x0303,
    secureOptions: constants.SSL_OP_CIPHER_SERVER_PREFERENCE,
  };
  const named = certificates.flatMap(({ names, cert, key }) =>
    names.map((serverName) => ({ serverName, cert, key, ...common })),
  );
  const first = { cert: fallback.cert, key: fallback.key, ...common };
  return named.length === 0 ? first : [first, ...named];
}
