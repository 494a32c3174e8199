// Converts the plugin openid-connect of Kong to the plugin oidc where it denies at least the same clients; knows no other plugin.
import type { Members } from "../members.ts";
import { isVaultReference, type KongContext } from "./context.ts";
import type { PluginConverter } from "./plugins.ts";

/** A text, or the only text of a list; null: none, several, or one that is not in the file. */
function onlyText(config: Members, name: string): string | null {
  const value = config.raw(name);
  const [only = null, ...others] = Array.isArray(value) ? value : [value];
  if (typeof only !== "string" || others.length > 0) return null;
  return isVaultReference(only) || only.includes("$") ? null : only;
}

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map(String) : typeof value === "string" ? [value] : [];

/** Kong's default is all methods. */
const METHODS = [
  ...["password", "client_credentials", "authorization_code", "bearer"],
  ...["introspection", "userinfo", "kong_oauth2", "refresh_token", "session"],
];

/** Requirements that the plugin oidc cannot check: without them, more clients would be allowed. */
const REQUIREMENTS = [
  ...["scopes_required", "roles_required", "consumer_claim", "consumer_claims"],
  ...["consumer_groups_claim", "claims_forbidden", "proof_of_possession_mtls"],
  ...["proof_of_possession_dpop", "credential_claim", "token_exchange"],
];

/** Settings that only change how tokens are requested, cached or shown; the plugin oidc has its own. */
const OWN_SETTINGS =
  /^(?:cache_|session_|redis|http_|https_|keepalive|timeout|ssl_verify|tls_client|display_errors|login_|logout_|verify_|client_|token_|introspection_|introspect_|userinfo_|discovery_|jwks_|rediscovery|extra_jwks|downstream_|unauthorized_|unexpected_|forbidden_|response_|bearer_token_|id_token_|refresh_token|refresh_tokens|password_|authorization_|pushed_|require_|resolve_|search_|leeway|preserve_query|run_on_preflight|mtls_|dpop_|by_username|forward|upstream_|using_pseudo|enable_hs|ignore_signature|jwt_session|domains|end_session|revocation_|issuers_allowed|no_proxy|proxy|reverify|audience$|max_age|response)/;

const MAPPED = new Set([
  ...["client_id", "client_secret", "logout_redirect_uri", "session_absolute_timeout"],
  ...["session_rolling_timeout", "session_cookie_lifetime", "upstream_headers_claims"],
  ...["upstream_headers_names", "upstream_access_token_header"],
]);

export const openidConnect: PluginConverter = (config, context) => {
  const issuer = issuerOf(config);
  const clientId = onlyText(config, "client_id");
  const given = textsOf(config.raw("auth_methods"));
  const methods = given.length === 0 ? METHODS : given;
  const unmet = REQUIREMENTS.filter((name) => isSet(config, name));
  const groups = textsOf(config.raw("groups_required"));
  const audiences = textsOf(config.raw("audience_required"));
  const hasLogin = methods.includes("authorization_code");
  const hasTokens = methods.includes("bearer");
  const problem =
    issuer === null || clientId === null
      ? "it has no issuer, or not exactly one client_id in the file"
      : unmet.length > 0
        ? `the plugin oidc cannot check ${unmet.join(", ")}`
        : !hasLogin && !hasTokens
          ? `the plugin oidc has none of the methods ${methods.join(", ")}`
          : [...groups, ...audiences].some((each) => each.includes(" "))
            ? "the plugin oidc cannot require several values at once"
            : audiences.length > 0 && hasLogin
              ? "the plugin oidc checks audience_required for Bearer tokens only"
              : null;
  if (problem !== null) {
    config.drop(problem);
    return null;
  }
  const lost = methods.filter(
    (each) => !["authorization_code", "bearer", "session"].includes(each),
  );
  if (lost.length > 0)
    config.changed("auth_methods", `clients can no longer authenticate by ${lost.join(", ")}`);
  const secret = onlyText(config, "client_secret");
  if (secret === null && config.has("client_secret"))
    config.changed("client_secret", "is not in the file: set it in the plugin oidc");
  return {
    name: "oidc",
    config: {
      issuer,
      client_id: clientId,
      ...(secret === null ? {} : { client_secret: secret }),
      ...scopesOf(config),
      ...callbackOf(config),
      ...sessionOf(config),
      unauth_action: hasLogin ? "auth" : "deny",
      bearer_allowed: hasTokens,
      bearer_audience: audiences,
      allowed_groups: groups,
      ...groupsClaimOf(config),
      headers: headersOf(config),
      forward_access_token: forwardsToken(config),
      ...anonymousOf(config, context),
    },
  };
};

function isSet(config: Members, name: string): boolean {
  const value = config.raw(name);
  const isEmpty = Array.isArray(value) ? value.length === 0 : value === null || value === "off";
  return !isEmpty && value !== false;
}

/** Kong also takes the address of the discovery document. */
function issuerOf(config: Members): string | null {
  const text = config.text("issuer")?.replace(/\/?\.well-known\/openid-configuration\/?$/, "");
  const url = text === undefined ? null : URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !/[${}]/.test(text ?? "")
    ? (text ?? null)
    : null;
}

function scopesOf(config: Members) {
  const scopes = textsOf(config.raw("scopes")).flatMap((text) => text.split(/\s+/));
  return scopes.length === 0 ? {} : { scopes: [...new Set(["openid", ...scopes])] };
}

/** The redirect URI becomes a path on every host. */
function callbackOf(config: Members) {
  const [uri] = textsOf(config.raw("redirect_uri"));
  const path = uri === undefined ? null : (URL.parse(uri)?.pathname ?? null);
  if (path === null || path === "/")
    config.changed(
      "redirect_uri",
      "register https://HOST/_sluice/oidc/callback at the provider for each host",
    );
  const [after] = textsOf(config.raw("logout_redirect_uri"));
  for (const name of config.names)
    if (OWN_SETTINGS.test(name) && !MAPPED.has(name))
      config.omit(name, "the plugin oidc has its own setting", false);
  return {
    ...(path === null || path === "/" ? {} : { redirect_path: path }),
    ...(after === undefined || URL.parse(after) === null
      ? {}
      : { post_logout_redirect_uri: after }),
  };
}

function sessionOf(config: Members) {
  const number = (name: string): number | null => {
    const value = config.raw(name);
    return typeof value === "number" && value > 0 ? Math.round(value) : null;
  };
  const absolute = number("session_absolute_timeout") ?? 86_400;
  const idle = number("session_rolling_timeout") ?? number("session_cookie_lifetime") ?? 3600;
  return { session: { idle: Math.min(idle, absolute), absolute } };
}

function groupsClaimOf(config: Members) {
  const path = [
    textsOf(config.raw("groups_claim")),
    textsOf(config.raw("authenticated_groups_claim")),
  ].find((each) => each.length > 0);
  return path === undefined ? {} : { groups_claim: path.join(".") };
}

/** Names of headers and the claims in them, in two lists. */
function headersOf(config: Members): Record<string, string> {
  const claims = textsOf(config.raw("upstream_headers_claims"));
  const names = textsOf(config.raw("upstream_headers_names"));
  return Object.fromEntries(names.map((name, at) => [name, claims[at] ?? ""] as const));
}

function forwardsToken(config: Members): boolean {
  const name = config.raw("upstream_access_token_header") ?? "authorization:bearer";
  if (name === "authorization:bearer") return true;
  config.changed("upstream_access_token_header", "the access token is not sent to the target");
  return false;
}

function anonymousOf(config: Members, { ids }: KongContext) {
  const word = config.text("anonymous");
  const id = word === null ? null : (ids.get(`consumers ${word}`) ?? null);
  if (word !== null && id === null)
    config.changed("anonymous", `no anonymous consumer is set: ${word} is not in the file`);
  return {
    hide_credentials: config.flag("hide_credentials") ?? false,
    run_on_preflight: true,
    ...(id === null ? {} : { anonymous_consumer: id }),
  };
}
