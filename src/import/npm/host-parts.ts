// Plugins that the hosts of Nginx Proxy Manager and their locations have in common: access, HSTS, exploits, headers, sizes.
import type { Members } from "../members.ts";
import { covers } from "../../applications/domains.ts";
import { type AccessOptions, addAccess, denyResembling } from "./access-lists.ts";
import type { Advanced } from "./advanced.ts";
import type { ImportedCertificate } from "./certificates.ts";
import type { NpmContext } from "./npm.ts";
import { isSet } from "./rows.ts";

export interface RouteLabel {
  readonly routeId: string;
  readonly of: string;
}

export interface Security {
  /** Null: the host has none, or it could not be imported. */
  readonly certificate: ImportedCertificate | null;
  readonly wantsRedirect: boolean;
  readonly wantsHsts: boolean;
  readonly hasSubdomains: boolean;
  /** Whether its certificate covers all names of the host. */
  readonly isCovered: boolean;
  /** Whether clients can use HTTPS now: only then may they be redirected. */
  readonly isSecured: boolean;
}

/** HTTPS of a host. Reports a certificate that is missing. */
export function securityOf(
  members: Members,
  domains: readonly string[],
  { certificates, output }: NpmContext,
): Security {
  const id = members.number("certificate_id") ?? 0;
  const wants = { redirect: isSet(members, "ssl_forced"), hsts: isSet(members, "hsts_enabled") };
  const hasSubdomains = isSet(members, "hsts_subdomains");
  const certificate = certificates.get(id) ?? null;
  const isCovered =
    certificate !== null && domains.every((name) => covers(certificate.names, name.toLowerCase()));
  if (id > 0 && !isCovered)
    output.report.changed(
      members.label,
      certificate === null
        ? "has no certificate, because that of the source could not be imported: HTTPS redirect and HSTS are off"
        : "its certificate does not cover all of its names: HTTPS redirect and HSTS are off",
    );
  // Nginx Proxy Manager ignores both without a certificate.
  const wantsRedirect = isCovered && wants.redirect;
  return {
    certificate,
    wantsRedirect,
    wantsHsts: wantsRedirect && wants.hsts,
    hasSubdomains,
    isCovered,
    isSecured: isCovered && certificate.isValid,
  };
}

/** `https_redirect` of a route that belongs to no application. */
export function redirectOf(
  { wantsRedirect, isSecured }: Security,
  { of, status }: { readonly of: string; readonly status: 301 | 308 },
  { output }: NpmContext,
): { readonly https_redirect: false | 301 | 308 } {
  if (wantsRedirect && !isSecured)
    output.report.changed(
      of,
      "does not redirect to HTTPS yet: set https_redirect of its route when its certificate is issued",
    );
  return { https_redirect: wantsRedirect && isSecured ? status : false };
}

/** The HSTS header of Nginx Proxy Manager, and no other header of the plugin. */
export function addHsts(
  { wantsHsts, isSecured, hasSubdomains }: Security,
  { routeId, of }: RouteLabel,
  { output }: NpmContext,
): void {
  if (!wantsHsts || !isSecured) return;
  output.plugin({
    name: "security-headers",
    key: routeId,
    what: `HSTS of ${of}`,
    scope: { route_id: routeId },
    config: {
      hsts: { max_age: 63_072_000, include_subdomains: hasSubdomains, preload: hasSubdomains },
      frame_options: null,
      nosniff: false,
      referrer_policy: null,
      remove: [],
    },
  });
}

/** The access list of a host, in front of one of its routes. */
export function addAccessList(
  id: number,
  options: AccessOptions,
  { output, accessLists }: NpmContext,
): void {
  const { routeId, of, isStrict } = options;
  const list = accessLists.get(id);
  if (list !== undefined) addAccess(output, list, options);
  else if (isStrict) denyResembling(output, options);
  if (list === undefined && id > 0) {
    output.report.omitted(`access list of ${of}`, "it does not exist in the database");
    output.loseProtection({ scope: { route_id: routeId }, what: `access list of ${of}` });
  }
}

export interface Extras {
  readonly blocksExploits: boolean;
  readonly isCached: boolean;
}

export function addExtras(
  { blocksExploits, isCached }: Extras,
  { routeId, of }: RouteLabel,
  { output }: NpmContext,
): void {
  const scope = { route_id: routeId };
  if (blocksExploits)
    output.plugin({
      name: "waf-lite",
      key: routeId,
      what: `block exploits of ${of}`,
      scope,
      config: { mode: "block", rulesets: ["block-exploits"] },
    });
  if (!isCached) return;
  const what = `asset caching of ${of}`;
  output.report.changed(what, "the Cache-Control header of responses decides what is cached");
  output.plugin({ name: "response-cache", key: routeId, what, scope, config: {} });
}

/** Nginx Proxy Manager sends it to every target, beside the headers that the gateway sends. */
const SCHEME = { "X-Forwarded-Scheme": "${request.scheme}" };

/** Headers and sizes from nginx directives. */
export function addAdvanced(
  { maxBody, requestHeaders, responseHeaders }: Advanced,
  { routeId, of, isForwarded }: RouteLabel & { readonly isForwarded: boolean },
  { output }: NpmContext,
): void {
  const scope = { route_id: routeId };
  const { remove } = requestHeaders;
  const set = { ...(isForwarded ? SCHEME : {}), ...requestHeaders.set };
  const changesRequest = Object.keys(set).length + remove.length > 0;
  const request = changesRequest ? { request: { headers: { set, remove } } } : {};
  const hasResponseHeaders = Object.keys(responseHeaders).length > 0;
  const response = hasResponseHeaders ? { response: { headers: { add: responseHeaders } } } : {};
  if (changesRequest || hasResponseHeaders)
    output.plugin({
      name: "transform",
      key: routeId,
      what: `headers of ${of}`,
      scope,
      config: { ...request, ...response },
      // A header that tells the target who the client is must not come from the client.
      protects: Object.keys(requestHeaders.set).length + remove.length > 0,
    });
  if (maxBody !== null && maxBody > 0)
    output.plugin({
      name: "request-size-limit",
      key: routeId,
      what: `client_max_body_size of ${of}`,
      scope,
      config: { max_body_bytes: maxBody, max_headers_bytes: 1_048_576, max_uri_bytes: 1_048_576 },
    });
}

/** Directives of a location take the place of those of its host. */
export const combined = (host: Advanced, own: Advanced): Advanced => ({
  ...own,
  timeouts: { ...host.timeouts, ...own.timeouts },
  maxBody: own.maxBody ?? host.maxBody,
  isWebsocket: own.isWebsocket || host.isWebsocket,
  requestHeaders: {
    set: { ...host.requestHeaders.set, ...own.requestHeaders.set },
    remove: [...new Set([...host.requestHeaders.remove, ...own.requestHeaders.remove])],
  },
  responseHeaders: { ...host.responseHeaders, ...own.responseHeaders },
});

/** Reports directives that are not imported. */
export function reportIgnored(
  { ignored, mayDeny, unknown }: Advanced,
  of: string,
  { output }: NpmContext,
): void {
  const what = `nginx directives of ${of}`;
  const named = (names: readonly string[]) =>
    names.length === 0 ? what : `${what}: ${names.join(", ")}`;
  if (mayDeny)
    output.report.omitted(named(unknown), "they may deny access, and have no equivalent");
  if (ignored.length > 0)
    output.report.omitted(named(ignored), "they deny no access, and have no equivalent");
}

/** Reports settings that belong to other objects here. */
export function omitSettings(members: Members, { output }: NpmContext): void {
  const { label } = members;
  if (members.raw("http2_support") !== null && !isSet(members, "http2_support"))
    output.report.omitted(`${label}: HTTP/2 off`, "set http2 of the listener");
  if (isSet(members, "trust_forwarded_proto"))
    output.report.omitted(
      `${label}: trust in X-Forwarded-Proto`,
      "add the proxy to trusted_proxies",
    );
}
