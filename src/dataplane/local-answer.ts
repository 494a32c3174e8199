// What the gateway answers itself because the configuration says so: HTTPS redirect, maintenance, default site; knows no upstream.
import type { Settings } from "../model/settings.ts";
import { CHALLENGE_PATH } from "./challenges.ts";
import { errorAnswer, toResponse } from "./error-page.ts";
import { failures } from "./error.ts";
import type { Generation } from "./generation.ts";
import { hangUp } from "./hang-up.ts";
import type { RequestContext } from "./request-context.ts";
import type { RouteRuntime } from "./route-runtime.ts";

/**
 * Whether the route answers with a redirect to HTTPS. Authorities may come over plain HTTP to whoever is behind the gateway,
 * too: their path goes on to a service that is there.
 */
export const sendsToHttps = (context: RequestContext, route: RouteRuntime): boolean =>
  route.redirectStatus > 0 &&
  context.clientScheme() === "http" &&
  !(route.route.service_id !== null && context.path.startsWith(CHALLENGE_PATH));

/**
 * Same host and target under https. A client that named a port reached us directly, so it needs the port of the https
 * listener; one that did not came through port 80, and 443 stands beside it.
 */
export function redirectToHttps(
  context: RequestContext,
  route: RouteRuntime,
  generation: Generation,
): Response {
  const named = /:\d+$/.test(context.clientHost());
  const host = context.clientHost().replace(/:\d+$/, "");
  const { httpsPort } = generation;
  const port = named && httpsPort !== null && httpsPort !== 443 ? `:${httpsPort}` : "";
  return redirect(`https://${host}${port}${context.target}`, route.redirectStatus);
}

function redirect(location: string, status: number): Response {
  return new Response(null, {
    status,
    headers: { Location: location, "Cache-Control": "no-store" },
  });
}

/** The answer of a route in maintenance; null for clients that are served as usual. */
export function maintenanceAnswer(context: RequestContext, route: RouteRuntime): Response | null {
  const { maintenance } = route.route;
  if (maintenance === null || route.bypassesMaintenance(context.clientAddress())) return null;
  const response =
    maintenance.html === ""
      ? errorPage(context, maintenance.retry_after)
      : page(context, maintenance.html, 503);
  response.headers.set("Retry-After", String(maintenance.retry_after));
  return response;
}

function errorPage(context: RequestContext, retryAfter: number): Response {
  const answer = errorAnswer(context, failures.maintenance, retryAfter);
  context.record.bytesOut = answer.body?.byteLength ?? 0;
  return toResponse(answer);
}

/** The answer to a request that no route takes; null for the plain 404. */
export function defaultSiteAnswer(
  context: RequestContext,
  site: Settings["default_site"],
): Response | null {
  switch (site.action) {
    case "404":
      return null;
    case "redirect":
      return redirect(site.to, 302);
    case "html":
      return page(context, site.html, 404);
    case "close":
      return hangUp();
    default:
      return site.action satisfies never;
  }
}

function page(context: RequestContext, html: string, status: number): Response {
  const bytes = new TextEncoder().encode(html);
  const isHead = context.method === "HEAD";
  context.record.bytesOut = isHead ? 0 : bytes.byteLength;
  return new Response(isHead ? null : bytes, {
    status,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-store",
      "X-Request-Id": context.id,
      ...(isHead ? { "Content-Length": String(bytes.byteLength) } : {}),
    },
  });
}
