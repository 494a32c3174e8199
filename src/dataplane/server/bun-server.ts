// One Bun.serve of one worker; knows no route and no upstream.
import type { Server, WebSocketHandler } from "bun";
import type { Listener } from "../../model/listener.ts";
import type { CertificatePlan, ListenerPlan } from "../../snapshot/snapshot.ts";
import { idleTimeoutOf } from "../listener/listener-runtime.ts";
import { fetchHandler, type StreamHandler } from "./bun-stream.ts";

export interface HttpListener {
  readonly plan: ListenerPlan;
  /** Whether connections are looked at before the server behind gets them. */
  readonly hasAcceptor: boolean;
  /** Stops accepting; requests and WebSockets in progress go on. Resolves when the last is done. */
  stop(): Promise<void>;
  /** After `stop`: connections that are kept open end with their present request, instead of when the client wants. */
  goAway(): void;
  /** Requests and WebSockets in progress. */
  readonly pending: number;
  /** Closes everything at once. */
  close(): Promise<void>;
}

/** What a listener is given beside its own plan. */
export interface ListenerContext {
  readonly serve: StreamHandler;
  readonly websocket: WebSocketHandler<never>;
  /** Those of a plain listener do not matter. */
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
}

/** Binds at once, beside the other workers on the same port. Throws the system's error. */
export function openHttpListener(plan: ListenerPlan, context: ListenerContext): HttpListener {
  const server = startHttpServer(plan, context, {
    hostname: plan.listener.address,
    port: plan.listener.port,
    reusePort: true,
    ...(plan.listener.http3 && plan.tls !== null ? { http3: true } : {}),
    fetch: fetchHandler(context.serve, null),
  });
  return {
    plan,
    hasAcceptor: false,
    stop: () => server.stop(false),
    // Bun has done so already.
    goAway() {},
    get pending() {
      return server.pendingRequests + server.pendingWebSockets;
    },
    close: () => server.stop(true),
  };
}

/** A Bun.serve with the listener's settings, and what says where and for whom. */
export function startHttpServer(
  { listener, tls }: ListenerPlan,
  { certificates, websocket }: ListenerContext,
  place: object,
): Server<unknown> {
  const options = {
    development: false,
    http2: listener.http2,
    idleTimeout: idleTimeoutOf(listener),
    // Limits are ours: Bun's would answer without a page and could not be changed at run time.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    ...(tls === null ? {} : { tls: tlsOptions(listener, tls, [...certificates.values()]) }),
    websocket,
    ...place,
  };
  return Bun.serve(options as unknown as Parameters<typeof Bun.serve>[0]) as Server<unknown>;
}

/** The default first, which clients get that name nothing known; Bun prefers an exact name to a wildcard. */
function tlsOptions(
  listener: Listener,
  fallback: NonNullable<ListenerPlan["tls"]>,
  certificates: readonly CertificatePlan[],
) {
  const minVersion = listener.tls_min_version === "1.3" ? 0x0304 : 0x0303;
  const named = certificates.flatMap(({ names, cert, key }) =>
    names.map((serverName) => ({ serverName, cert, key, minVersion })),
  );
  const first = { cert: fallback.cert, key: fallback.key, minVersion };
  return named.length === 0 ? first : [first, ...named];
}
