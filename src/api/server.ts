// The management API from request to response: guard, endpoint, one form of error, headers; and its listener.
import { constants } from "node:crypto";
import { SeveralUsers } from "../auth/authenticator.ts";
import type { Log } from "../log.ts";
import { StorageError } from "../model/error.ts";
import { accessTable } from "./access.ts";
import { createApp } from "./app.ts";
import { CredentialReader } from "./credentials.ts";
import { docsHeaders } from "./docs.ts";
import { EventStreams, type EventStreamsOptions, isEventStream } from "./event-stream.ts";
import { type Admission, createGuard } from "./guard.ts";
import { createNodeReader } from "./node-reader.ts";
import { withoutKnown } from "./preconditions.ts";
import { Refusals } from "./refusals.ts";
import { errorMessage, securityHeaders, toErrorResponse } from "./reply.ts";
import type { StatusSource } from "./routes/status.ts";

export interface ManagementApiDeps extends StatusSource {
  readonly log: Log;
  /** Host that the listener is bound to: the guard accepts it in Host. */
  readonly boundHost: string;
  /** As in the guard's options. */
  readonly loopToken?: string;
  readonly streams?: Partial<Pick<EventStreamsOptions, "commentMs" | "limits">>;
  /** Whether the listener itself speaks TLS. */
  readonly isTls?: boolean;
}

export interface ManagementApi {
  /** Handles one request; never rejects. `peerAddress` is the socket's. */
  handle(request: Request, peerAddress: string): Promise<Response>;
  /** All routes, as `METHOD /path`. */
  readonly routed: readonly string[];
  /** Event streams never end by themselves: this ends them, and no new ones are opened. */
  endStreams(): void;
}

export function createManagementApi(deps: ManagementApiDeps): ManagementApi {
  const { changes, adminNetworks } = deps.control;
  const isAllowedAddress = (address: string) => adminNetworks.isAllowed(address);
  const streams = createStreams(deps, isAllowedAddress);
  const { authenticator } = deps.control.auth;
  const publicUrl = () => changes.config.settings.public_url;
  const app = createApp({
    ...deps,
    streams,
    isStillValid: ({ needed, principal }: Admission) =>
      needed === "open" || authenticator.isStillValid(principal),
    hasSecureCookies: () => deps.isTls === true || publicUrl()?.startsWith("https:") === true,
  });
  const credentials = new CredentialReader();
  const refusals = new Refusals(deps.control.audit, accessTable);
  const { fleet } = deps.control;
  const now = () => deps.clock.now();
  const guard = createGuard({
    table: accessTable,
    ...(fleet === null
      ? {}
      : { nodeReader: createNodeReader(fleet.reads, { table: accessTable, now }) }),
    isAllowedAddress,
    isOwnMachine: (address) => adminNetworks.isOwnMachine(address),
    authenticate: refusals.watch((request, peer, row) =>
      authenticator.authenticate(credentials.read(request, row), peer),
    ),
    boundHost: deps.boundHost,
    ...(deps.loopToken === undefined ? {} : { loopToken: deps.loopToken }),
    publicUrl,
  });
  const answer = async (request: Request, pathname: string, peer: string) =>
    await app.dispatch(request, guard(request, pathname, peer));
  return {
    routed: app.routed,
    endStreams: () => streams.close(),
    async handle(received, peerAddress) {
      const requestId = Bun.randomUUIDv7();
      const request = credentials.receive(received);
      const pathname = URL.parse(request.url)?.pathname ?? "";
      let response: Response;
      try {
        response = await answer(request, pathname, peerAddress);
      } catch (error) {
        response = failureOf(deps, error, { method: request.method, pathname, requestId });
        const [{ status }, message] = [response, errorMessage(error, requestId)];
        refusals.record(request, { pathname, peer: peerAddress, status, message });
      }
      response = withoutKnown(request, response);
      const headers = new Headers({
        ...securityHeaders,
        ...(deps.isTls === true ? { "strict-transport-security": HSTS } : {}),
        "x-request-id": requestId,
        ...(namesRevision(request, response)
          ? { "x-config-revision": String(changes.revision) }
          : {}),
        ...Object.fromEntries(response.headers),
        ...(response.ok ? docsHeaders[pathname] : {}),
        ...(asksToClose(received) ? { connection: "close" } : {}),
      });
      // The object above holds only the last of several cookies.
      headers.delete("set-cookie");
      for (const cookie of response.headers.getSetCookie()) headers.append("set-cookie", cookie);
      return new Response(response.body, { status: response.status, headers });
    },
  };
}

/** RFC 9112 section 9.6: the response to the last request of a connection says so. */
const asksToClose = ({ headers }: Request): boolean =>
  /(?:^|,)\s*close\s*(?:,|$)/i.test(headers.get("connection") ?? "");

/** One year. */
const HSTS = "max-age=31536000";

/** Event streams that end as soon as a change or the end of a session revokes their access. */
function createStreams(
  { control, clock, streams: options }: ManagementApiDeps,
  isAllowedAddress: (address: string) => boolean,
): EventStreams {
  const { changes, auth } = control;
  const streams = new EventStreams({
    ...options,
    hub: control.events,
    clock,
    isStillValid: (principal) =>
      (principal.method === "node" || isAllowedAddress(principal.address)) &&
      auth.authenticator.isStillValid(principal),
  });
  changes.onStored(() => streams.recheck());
  auth.authenticator.onRevoked(() => streams.recheck());
  return streams;
}

/** The response of a failed request, which is logged when it is our fault. */
function failureOf(
  { control, log }: ManagementApiDeps,
  error: unknown,
  request: { readonly method: string; readonly pathname: string; readonly requestId: string },
): Response {
  const { method, pathname, requestId } = request;
  const response = toErrorResponse(error, requestId);
  if (error instanceof SeveralUsers)
    for (const cookie of control.auth.cookies.clear(error.cookieNames))
      response.headers.append("set-cookie", cookie);
  if (response.status === 500 || error instanceof StorageError)
    log.error("a management request failed", {
      method,
      path: pathname,
      request_id: requestId,
      error,
    });
  return response;
}

/** Every response to a change names the revision in service, except to clients without access. */
function namesRevision({ method }: Request, { status }: Response): boolean {
  return method !== "GET" && method !== "HEAD" && status !== 401 && status !== 403;
}

export interface ServeOptions {
  readonly hostname: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Seconds in which a connection that sends and receives nothing is closed. Default 30. */
  readonly idleTimeout?: number;
}

export interface ManagementServer {
  readonly port: number;
  readonly url: string;
  /** Stops accepting; resolves when the requests in flight have ended. */
  stop(): Promise<void>;
}

/** Without it the client chooses the cipher. */
const secureOptions = constants.SSL_OP_CIPHER_SERVER_PREFERENCE;

const IDLE_TIMEOUT_SECONDS = 30;

/**
 * The same for an event stream. Comments count as activity while the client reads; this closes the streams of clients that
 * read nothing or vanished.
 */
const STREAM_TIMEOUT_SECONDS = 60;

/** Serves the API on its own listener; throws when the address is taken. */
export function serveManagementApi(api: ManagementApi, options: ServeOptions): ManagementServer {
  const { hostname, port, tls, idleTimeout = IDLE_TIMEOUT_SECONDS } = options;
  const server = Bun.serve({
    hostname,
    port,
    ...(tls === undefined ? {} : { tls: { cert: tls.cert, key: tls.key, secureOptions } }),
    idleTimeout,
    // The body reader enforces the limit, because Bun's 413 has no body.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    async fetch(request, self) {
      // A change may wait for its turn behind a large one. Its body has a deadline of its own.
      const mayWait = request.method !== "GET" && request.method !== "HEAD";
      if (mayWait) self.timeout(request, 0);
      const response = await api.handle(request, self.requestIP(request)?.address ?? "");
      if (mayWait) self.timeout(request, idleTimeout);
      if (isEventStream(response)) self.timeout(request, STREAM_TIMEOUT_SECONDS);
      return response;
    },
  });
  const bound = server.port ?? port;
  return {
    port: bound,
    url: `${tls === undefined ? "http" : "https"}://${hostname.includes(":") ? `[${hostname}]` : hostname}:${bound}`,
    stop() {
      api.endStreams();
      return server.stop();
    },
  };
}
