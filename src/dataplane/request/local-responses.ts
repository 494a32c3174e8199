// Responses of the gateway by configuration: redirect to HTTPS, maintenance, default site; knows no upstream.
import { FieldList } from "../../http/field-list.ts";
import type { Settings } from "../../model/settings.ts";
import { CHALLENGE_PATH } from "../challenges.ts";
import { errorResponse, type LocalResponse } from "../error-page.ts";
import { failures } from "../error.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { ClientRequest } from "./client-request.ts";

/** The route's own response; null: none. */
export function routeResponse(request: ClientRequest, route: RouteRuntime): LocalResponse | null {
  if (redirectsToHttps(request, route)) return redirectToHttps(request, route);
  return route.route.maintenance === null ? null : maintenanceResponse(request, route);
}

/**
 * Whether the route responds with a redirect to HTTPS. Applications behind the gateway may use ACME over plain HTTP:
 * the challenge path goes to the service.
 */
export const redirectsToHttps = (request: ClientRequest, route: RouteRuntime): boolean =>
  route.redirectStatus > 0 &&
  request.clientScheme() === "http" &&
  !(route.route.service_id !== null && isChallenge(request.path));

/** A token is base64url (RFC 8555 section 8.3): behind it, a path as it came could climb out. */
const isChallenge = (path: string): boolean =>
  path.startsWith(CHALLENGE_PATH) && /^[\w-]*$/.test(path.slice(CHALLENGE_PATH.length));

/**
 * Same host and target under https. A client that sent a port connected directly, so it needs the port of the https
 * listener; without a port it used port 80, whose counterpart is 443.
 */
export function redirectToHttps(request: ClientRequest, route: RouteRuntime): LocalResponse {
  const named = /:\d+$/.test(request.clientHost());
  const host = request.clientHost().replace(/:\d+$/, "");
  const { httpsPort } = request.generation;
  const port = named && httpsPort !== null && httpsPort !== 443 ? `:${httpsPort}` : "";
  return redirect(`https://${host}${port}${request.target}`, route.redirectStatus);
}

function redirect(location: string, status: number): LocalResponse {
  const fields = new FieldList({ Location: location, "Cache-Control": "no-store" });
  return { status, fields, body: null };
}

/** The response of a route in maintenance; null for clients that bypass it. */
export function maintenanceResponse(
  request: ClientRequest,
  route: RouteRuntime,
): LocalResponse | null {
  const { maintenance } = route.route;
  if (maintenance === null || route.bypassesMaintenance(request.clientAddress())) return null;
  const response =
    maintenance.html === ""
      ? errorResponse(request, failures.maintenance, maintenance.retry_after)
      : page(request, maintenance.html, 503);
  response.fields.set("Retry-After", String(maintenance.retry_after));
  return response;
}

/** The response to a request that no route matches: `close` ends the connection, null stands for the plain 404. */
export function defaultSiteResponse(
  request: ClientRequest,
  site: Settings["default_site"],
): LocalResponse | "close" | null {
  switch (site.action) {
    case "404":
      return null;
    case "redirect":
      return redirect(site.to, 302);
    case "html":
      return page(request, site.html, 404);
    case "close":
      return "close";
    default:
      return site.action satisfies never;
  }
}

function page(request: ClientRequest, html: string, status: number): LocalResponse {
  const body = new TextEncoder().encode(html);
  const isHead = request.method === "HEAD";
  return {
    status,
    body: isHead ? null : body,
    fields: new FieldList({
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "X-Request-Id": request.id,
      ...(isHead ? { "Content-Length": String(body.byteLength) } : {}),
    }),
  };
}
