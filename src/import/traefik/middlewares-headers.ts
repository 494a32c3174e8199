// Converts the middleware headers of Traefik to the plugins transform, security-headers and cors; knows no router.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import type { MiddlewareConverter, MiddlewarePlugin } from "./middlewares.ts";

/** Headers that the gateway itself sets. */
const RESERVED =
  /^(?:x-forwarded-(?:for|proto|host|port)|x-real-ip|via|cdn-loop|content-length|expect|connection|transfer-encoding|upgrade|te|trailer|keep-alive|proxy-connection)$/i;

interface Changes {
  readonly set: Record<string, string>;
  readonly remove: string[];
  host: string | null;
}

/** An empty value removes the header. */
function changesOf(members: Members | null, where: Members, field: string): Changes {
  const found: Changes = { set: {}, remove: [], host: null };
  for (const name of members?.names ?? []) {
    const value = members?.text(name) ?? "";
    if (field === "customRequestHeaders" && name.toLowerCase() === "host") found.host = value;
    else if (RESERVED.test(name)) where.changed(field, `${name} stays as the gateway sets it`);
    else if (value === "" || value.includes("${")) found.remove.push(name);
    else found.set[name] = value;
  }
  return found;
}

const filled = ({ set, remove }: Changes): Document | null => {
  const hasSet = Object.keys(set).length > 0;
  if (!hasSet && remove.length === 0) return null;
  return { ...(hasSet ? { set } : {}), ...(remove.length === 0 ? {} : { remove }) };
};

const REFERRER_POLICIES = [
  ...["no-referrer", "no-referrer-when-downgrade", "origin", "origin-when-cross-origin"],
  ...["same-origin", "strict-origin", "strict-origin-when-cross-origin", "unsafe-url"],
];

/** Headers of responses that the plugin security-headers does not have. */
function responseHeaders(settings: Members): Record<string, string> {
  const found: Record<string, string> = {};
  const set = (name: string, value: string | null) => {
    if (value !== null && value !== "") found[name] = value;
  };
  const custom = settings.text("customBrowserXSSValue");
  if (settings.flag("browserXssFilter") === true) set("X-XSS-Protection", "1; mode=block");
  set("X-XSS-Protection", custom);
  set("Content-Security-Policy-Report-Only", settings.text("contentSecurityPolicyReportOnly"));
  set("Feature-Policy", settings.text("featurePolicy"));
  return found;
}

function securityOf(settings: Members, added: Record<string, string>): Document | null {
  const seconds = settings.number("stsSeconds") ?? 0;
  const subdomains = settings.flag("stsIncludeSubdomains") ?? false;
  const preload = settings.flag("stsPreload") ?? false;
  settings.omit("forceSTSHeader", "Strict-Transport-Security is sent over HTTPS only", false);
  const denied = settings.flag("frameDeny") === true ? "DENY" : null;
  const frame = (settings.text("customFrameOptionsValue") ?? "").toUpperCase() || denied;
  const isKnownFrame = frame === "DENY" || frame === "SAMEORIGIN";
  if (frame !== null && !isKnownFrame) added["X-Frame-Options"] = frame;
  const referrer = settings.text("referrerPolicy");
  const isKnownPolicy = referrer !== null && REFERRER_POLICIES.includes(referrer);
  if (referrer !== null && referrer !== "" && !isKnownPolicy) added["Referrer-Policy"] = referrer;
  const nosniff = settings.flag("contentTypeNosniff") ?? false;
  const csp = settings.text("contentSecurityPolicy");
  const permissions = settings.text("permissionsPolicy");
  const config = {
    hsts: seconds > 0 ? { max_age: seconds, include_subdomains: subdomains, preload } : null,
    frame_options: isKnownFrame ? frame : null,
    nosniff,
    referrer_policy: isKnownPolicy ? referrer : null,
    ...(csp === null || csp === "" ? {} : { csp }),
    ...(permissions === null || permissions === "" ? {} : { permissions_policy: permissions }),
  };
  const isSet = Object.values(config).some((value) => value !== null && value !== false);
  return isSet ? { ...config, remove: [] } : null;
}

/** A regular expression of the plugin matches the whole origin, one of Traefik a part of it. */
function originOf(source: string): string {
  const start = source.startsWith("^") ? "" : ".*";
  const end = source.endsWith("$") ? "" : ".*";
  return `~${start}(?:${source.replace(/^\^/, "").replace(/\$$/, "")})${end}`;
}

function corsOf(settings: Members): Document | null {
  const origins = settings.texts("accessControlAllowOriginList");
  const expressions = settings.texts("accessControlAllowOriginListRegex");
  const methods = settings.texts("accessControlAllowMethods");
  const allowed = settings.texts("accessControlAllowHeaders");
  const exposed = settings.texts("accessControlExposeHeaders");
  const isAllowed = settings.flag("accessControlAllowCredentials") ?? false;
  const maxAge = settings.bounded("accessControlMaxAge", { min: 0, max: 86_400 });
  settings.raw("addVaryHeader");
  if (origins.length + expressions.length === 0) return null;
  const isOpen = origins.includes("*");
  if (isOpen && isAllowed)
    settings.changed(
      "accessControlAllowCredentials",
      'are not allowed with the origin "*": list the origins',
    );
  const isAnyHeader = allowed.length === 0 || allowed.includes("*");
  return {
    origins: isOpen ? ["*"] : [...origins, ...expressions.map(originOf)],
    ...(methods.length === 0 ? {} : { methods }),
    ...(isAnyHeader ? {} : { allow_headers: allowed }),
    expose_headers: exposed,
    credentials: isAllowed && !isOpen,
    ...(maxAge === null ? {} : { max_age: maxAge }),
  };
}

/** Settings of earlier versions and of other proxies. */
const IGNORED: Readonly<Record<string, string>> = {
  hostsProxyHeaders: "set trusted_proxies",
  sslProxyHeaders: "set trusted_proxies",
  sslTemporaryRedirect: "the redirect is permanent",
  sslHost: "use the plugin redirect",
  sslForceHost: "use the plugin redirect",
  publicKey: "browsers no longer read it",
  isDevelopment: "the settings apply as in production",
};

const convert: MiddlewareConverter = (settings) => {
  const request = changesOf(
    settings.object("customRequestHeaders"),
    settings,
    "customRequestHeaders",
  );
  const custom = changesOf(
    settings.object("customResponseHeaders"),
    settings,
    "customResponseHeaders",
  );
  const added = responseHeaders(settings);
  const security = securityOf(settings, added);
  const cors = corsOf(settings);
  for (const [name, why] of Object.entries(IGNORED)) settings.omit(name, why, false);
  const hosts = settings.texts("allowedHosts");
  const response = filled({ ...custom, set: { ...added, ...custom.set } });
  const sent = filled(request);
  const parts = {
    ...(sent === null && request.host === null
      ? {}
      : {
          request: {
            ...(request.host === null ? {} : { host: request.host }),
            ...(sent === null ? {} : { headers: sent }),
          },
        }),
    ...(response === null ? {} : { response: { headers: response } }),
  };
  const plugins: MiddlewarePlugin[] = [];
  // Without it clients could send the headers of requests themselves.
  const protects = sent !== null;
  if (Object.keys(parts).length > 0) plugins.push({ name: "transform", config: parts, protects });
  if (security !== null) plugins.push({ name: "security-headers", config: security });
  if (cors !== null) plugins.push({ name: "cors", config: cors });
  return {
    plugins,
    ...(settings.flag("sslRedirect") === true ? { fields: { https_redirect: 301 } } : {}),
    ...(hosts.length > 0 ? { lost: `allowedHosts of ${settings.label}` } : {}),
  };
};

export const headers: Readonly<Record<string, MiddlewareConverter>> = { headers: convert };
