// The plugins of an application, one row each: which plugin, where it applies, and its settings; pure.
import { PRIVATE_NETWORKS } from "../model/local-ca.ts";
import type { Fields, Planned } from "./planned-part.ts";

export interface PluginPart {
  readonly role: string;
  readonly plugin: string;
  /** The service, so that a route that is added to it later has the plugin too; or the first route. */
  readonly scope: "service_id" | "route_id";
  /** The field of the application that it stands for. */
  readonly place: string;
  /** Null: the application has no such plugin. The plugin's defaults are left out. */
  readonly config: (application: Planned) => Fields | null;
  /** Whether it runs; default: always. */
  readonly isOn?: (application: Planned) => boolean;
}

const YEAR_SECONDS = 31_536_000;
const hsts = { max_age: YEAR_SECONDS, include_subdomains: false, preload: false };

/** Everything else that the plugin could say is left to the service. */
const hstsOnly = {
  hsts,
  frame_options: null,
  nosniff: false,
  referrer_policy: null,
  csp: null,
  permissions_policy: null,
  coop: null,
  corp: null,
  remove: [],
};

/** oauth2-proxy redirects to the login at its root only, where its preset does not ask. */
const oauth2Proxy = {
  request_headers: ["Authorization", "Cookie", "Accept", "X-Requested-With"],
  response_headers_to_upstream: ["User", "Groups", "Email", "Preferred-Username"].map(
    (name) => `X-Auth-Request-${name}`,
  ),
};

function ssoConfig({ policies: { sso } }: Planned): Fields | null {
  if (sso === null) return null;
  const { provider, url } = sso;
  return provider === "authelia" || provider === "authentik"
    ? { url, preset: provider }
    : { url, ...oauth2Proxy };
}

function accessConfig({ access, networks }: Planned): Fields | null {
  if (access === "public") return null;
  return {
    allow: access === "private" ? [...PRIVATE_NETWORKS, ...networks] : networks,
    deny: [],
    status: 403,
    message: null,
    stream_reset: false,
  };
}

const service = { scope: "service_id" } as const;

export const pluginParts: readonly PluginPart[] = [
  {
    ...service,
    role: "access",
    plugin: "ip-restriction",
    place: "networks",
    config: accessConfig,
  },
  {
    role: "hsts",
    plugin: "security-headers",
    scope: "route_id",
    place: "https.hsts",
    config: ({ https, policies }) => {
      if (!https.hsts || https.mode === "off") return null;
      // It replaces the instance of the service.
      return policies.headers?.security === true ? { hsts } : hstsOnly;
    },
    isOn: ({ https_state: state }) => state.secured,
  },
  {
    ...service,
    role: "password",
    plugin: "basic-auth",
    place: "policies.login",
    config: ({ name, policies: { login } }) => login && { realm: name },
  },
  {
    ...service,
    role: "password_group",
    plugin: "acl",
    place: "policies.login",
    config: ({ policies: { login } }) => login && { allow: [login.group] },
  },
  {
    ...service,
    role: "sso",
    plugin: "forward-auth",
    place: "policies.sso",
    config: ssoConfig,
  },
  {
    ...service,
    role: "rate_limit",
    plugin: "rate-limit",
    place: "policies.rate_limit",
    config: ({ policies: { rate_limit: limit } }) => limit && { limits: [limit] },
  },
  {
    ...service,
    role: "security",
    plugin: "security-headers",
    place: "policies.headers",
    config: ({ policies: { headers } }) => (headers?.security === true ? { hsts: null } : null),
  },
  {
    ...service,
    role: "headers",
    plugin: "transform",
    place: "policies.headers",
    config: ({ policies: { headers } }) =>
      headers === null || Object.keys(headers.set).length === 0
        ? null
        : { response: { headers: { set: headers.set } } },
  },
  {
    ...service,
    role: "redirect",
    plugin: "redirect",
    place: "policies.redirect",
    config: ({ policies: { redirect } }) =>
      redirect && {
        ...(redirect.from === "/" ? {} : { prefix: redirect.from }),
        to: redirect.to,
        status: 307,
      },
  },
  {
    ...service,
    role: "upload",
    plugin: "request-size-limit",
    place: "policies.upload",
    config: ({ policies: { upload } }) => upload,
  },
];
