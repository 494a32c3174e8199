// Registers every endpoint with the framework, which only routes; knows no guard rule.
import { Elysia } from "elysia";
import type { ControlPlane } from "../control-plane.ts";
import type { FleetView, FleetWrite } from "../control/fleet-view.ts";
import {
  DESCRIPTION_PATH,
  DOCS_PATH,
  JSON_PATH,
  SCRIPT_PATH,
  scriptResponse,
  YAML_PATH,
} from "./docs.ts";
import type { Call, Endpoint } from "./endpoint.ts";
import { nodesHeaders, requirementOf, requireNodes, takeWait } from "./fleet-write.ts";
import type { Admission } from "./guard.ts";
import { readJson } from "./json-body.ts";
import { ApiError } from "../model/error.ts";
import { collectionNames } from "../model/gateway-config.ts";
import type { Reference, ReferenceOptions } from "./reference.ts";
import { toResponse } from "./reply.ts";
import type { EventStreams } from "./event-stream.ts";
import { acmeEndpoints } from "./routes/acme.ts";
import { applicationEndpoints } from "./routes/applications.ts";
import { auditEndpoints } from "./routes/audit.ts";
import { authEndpoints, type SignInSource } from "./routes/auth.ts";
import { metricsEndpoints } from "./routes/metrics.ts";
import { requestEndpoints } from "./routes/requests.ts";
import { eventEndpoints } from "./routes/events.ts";
import { cacheEndpoints } from "./routes/cache.ts";
import { collectionEndpoints } from "./routes/resource-endpoints.ts";
import { certificateEndpoints } from "./routes/certificates.ts";
import { credentialEndpoints } from "./routes/credentials.ts";
import { localCaEndpoints } from "./routes/local-ca.ts";
import { alertEndpoints } from "./routes/alerts.ts";
import { dnsProviderEndpoints } from "./routes/dns-providers.ts";
import { healthEndpoints } from "./routes/health.ts";
import { preflightEndpoints } from "./routes/preflight.ts";
import { pluginEndpoints } from "./routes/plugins.ts";
import { revisionEndpoints } from "./routes/revisions.ts";
import { explainEndpoints } from "./routes/explain.ts";
import { serviceTargetEndpoints } from "./routes/service-targets.ts";
import { settingsEndpoints } from "./routes/settings.ts";
import { ssoEndpoints } from "./routes/sso.ts";
import { connectionEndpoints } from "./routes/connections.ts";
import { statsEndpoints } from "./routes/stats.ts";
import { type StatusSource, statusEndpoints } from "./routes/status.ts";
import { transferEndpoints } from "./routes/transfer.ts";
import { discoveryEndpoints } from "./routes/discovery.ts";
import { nodeEndpoints } from "./routes/nodes.ts";
import { adminTokenEndpoints } from "./routes/admin-token.ts";
import { accountEndpoints } from "./routes/account.ts";
import { accessTable } from "./access.ts";
import { createUi, UI_ASSET_PATH, UI_PAGE_PATHS } from "./ui.ts";

/** Routes a request that the guard has admitted. */
export interface App {
  /** Returns the response, or throws what the endpoint threw. */
  dispatch(request: Request, admission: Admission): Promise<Response>;
  /** All routes, as `METHOD /path`. */
  readonly routed: readonly string[];
}

export interface AppSource extends StatusSource, SignInSource {
  readonly streams: EventStreams;
  /** Whether the principal would be admitted again. */
  readonly isStillValid: (admission: Admission) => boolean;
}

/** The state of a request inside the framework. */
interface Exchange {
  readonly admission: Admission;
  readonly isStillValid: () => boolean;
  failure: { readonly error: unknown } | null;
}

export function createApp(source: AppSource): App {
  const exchanges = new WeakMap<Request, Exchange>();
  const elysia = new Elysia({ aot: true, normalize: false });
  const endpoints = endpointsOf(source.control, source);
  // Without "none" the framework would read the body itself and respond to malformed JSON in its own form.
  for (const plain of endpoints) {
    const endpoint = withFleet(plain, source.control.fleet);
    elysia.route(
      endpoint.method,
      endpoint.path,
      ({ request }: { request: Request }) => run(endpoint, request, exchanges.get(request)),
      { parse: "none" },
    );
  }
  const reference = referenceOf(endpoints, {
    version: source.version,
    sessionCookie: source.control.auth.cookies.nameOf(false),
  });
  for (const path of [DOCS_PATH, DESCRIPTION_PATH, YAML_PATH, JSON_PATH])
    elysia.get(path, () => reference(path));
  elysia.get(SCRIPT_PATH, ({ request }) => scriptResponse(request));
  routeUi(elysia, exchanges);
  return {
    routed: elysia.routes.map(({ method, path }) => `${method} ${path}`),
    async dispatch(request, admission) {
      const inner = toInner(request);
      const isStillValid = () => source.isStillValid(admission);
      const exchange: Exchange = { admission, isStillValid, failure: null };
      exchanges.set(inner, exchange);
      const response = await elysia.handle(inner);
      if (exchange.failure !== null) throw exchange.failure.error;
      // The guard admitted what the framework rejects here, so the two disagree.
      if (response.status >= 400) throw new Error(`not routed: ${await response.text()}`);
      return response;
    },
  };
}

/** Every endpoint, in the order of the reference. */
export function endpointsOf(control: ControlPlane, source: AppSource): Endpoint[] {
  return [
    ...collectionNames.flatMap((name) =>
      name === "applications"
        ? applicationEndpoints(control)
        : collectionEndpoints(name, control.resources[name]),
    ),
    ...serviceTargetEndpoints(control),
    ...healthEndpoints(control),
    ...explainEndpoints(control),
    ...certificateEndpoints(control),
    ...localCaEndpoints(control),
    ...dnsProviderEndpoints(control),
    ...alertEndpoints(control),
    ...preflightEndpoints(control),
    ...acmeEndpoints(control),
    ...connectionEndpoints(control),
    ...pluginEndpoints(control),
    ...cacheEndpoints(control),
    ...credentialEndpoints(control),
    ...accountEndpoints(control),
    ...authEndpoints(source),
    ...adminTokenEndpoints(control),
    ...settingsEndpoints(control),
    ...transferEndpoints(control, `sluice ${source.version}`),
    ...revisionEndpoints(control),
    ...ssoEndpoints(control),
    ...auditEndpoints(control.audit),
    ...eventEndpoints(control, source.streams),
    ...requestEndpoints(control, source.streams),
    ...statsEndpoints(control),
    ...metricsEndpoints(control.observation.metrics),
    ...discoveryEndpoints(control),
    ...nodeEndpoints(control),
    ...statusEndpoints(source),
  ];
}

/** The framework finds the path by counting characters, which fails for hosts of up to three letters. */
function toInner(request: Request): Request {
  const { protocol, pathname, search } = new URL(request.url);
  const url = `${protocol}//localhost${pathname}${search}`;
  if (request.method === "HEAD") return new Request(url, { headers: request.headers });
  return new Request(url, request);
}

/** Runs one endpoint. Stores a failure for the caller, because the framework would respond in its own form. */
async function run(
  endpoint: Endpoint,
  request: Request,
  exchange: Exchange | undefined,
): Promise<Response> {
  // The guard and the framework each matched the path: the admission holds only if they matched the same row.
  if (exchange?.admission.row.path !== endpoint.path) throw new Error("routed past the guard");
  const { principal, params } = exchange.admission;
  try {
    const body = await bodyFor(endpoint, request);
    // The client may have lost access while it sent the body.
    if (!exchange.isStillValid()) throw new ApiError(401, "the credentials are no longer valid");
    const { protocol, searchParams } = new URL(request.url);
    const reply = await endpoint.answer({
      principal,
      method: endpoint.method,
      params,
      query: searchParams,
      headers: request.headers,
      origin: `${protocol}//${request.headers.get("host") ?? "localhost"}`,
      body,
    });
    return reply instanceof Response ? reply : await toResponse(reply);
  } catch (error) {
    exchange.failure = { error };
    return new Response(null, { status: 500 });
  }
}

/** The endpoint with what every change offers in a fleet: `wait`, `Sluice-Require-Nodes`, and the headers of the reply. */
function withFleet(endpoint: Endpoint, fleet: FleetView | null): Endpoint {
  const { method, path } = endpoint;
  const role = accessTable.find((row) => row.path === path)?.methods[method];
  // Clients without authentication learn nothing about the nodes.
  if (method === "GET" || role === "open") return endpoint;
  const answer = async (call: Call) => {
    const waitMs = takeWait(call.query);
    const requires = requirementOf(call.headers);
    if (requires !== null) await requireNodes(requires, fleet);
    if (fleet === null) return await endpoint.answer(call);
    const write: FleetWrite = { requires, waitMs, committed: null };
    fleet.expect(call.principal, write);
    const reply = await endpoint.answer(call);
    const response = reply instanceof Response ? reply : await toResponse(reply);
    const headers = await nodesHeaders(fleet, write);
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    return response;
  };
  return { ...endpoint, answer };
}

async function bodyFor({ takesBody, readBody }: Endpoint, request: Request): Promise<unknown> {
  if (!takesBody) return undefined;
  if (readBody !== undefined) return await readBody(request);
  const isEmpty = request.body === null || request.headers.get("content-length") === "0";
  return takesBody === "optional" && isEmpty ? undefined : await readJson(request);
}

/** The pages and assets of the web UI. */
function routeUi(elysia: Pick<Elysia, "get">, exchanges: WeakMap<Request, Exchange>): void {
  const ui = createUi();
  for (const path of UI_PAGE_PATHS) elysia.get(path, ({ request }) => ui.page(request));
  elysia.get(UI_ASSET_PATH, async ({ request }) => {
    const exchange = exchanges.get(request);
    if (exchange === undefined) throw new Error("routed past the guard");
    try {
      return await ui.asset(request, exchange.admission.params["name"] ?? "");
    } catch (error) {
      exchange.failure = { error };
      return new Response(null, { status: 500 });
    }
  });
}

/**
 * The reference page and the API description. The first request loads their dependencies, which would slow down every
 * start and hold memory for the whole uptime.
 */
function referenceOf(endpoints: readonly Endpoint[], options: ReferenceOptions) {
  let loaded: Promise<Reference> | null = null;
  return async (path: string): Promise<Response> => {
    loaded ??= import("./reference.ts").then((module) =>
      module.createReference(endpoints, options),
    );
    return await (await loaded).answer(path);
  };
}
