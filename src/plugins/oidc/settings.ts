// The settings of oidc: their schema and what is wrong with them beyond it; knows no request.
import { Type as t } from "@sinclair/typebox";
import { authenticationFields } from "../../pdk/authentication.ts";
import { destination } from "../../pdk/destination.ts";
import {
  config,
  flag,
  group,
  integer,
  listOf,
  milliseconds,
  nullable,
  oneOf,
  secret,
  url,
} from "../../pdk/fields.ts";
import { GATEWAY_FIELDS, isFieldValue, isToken } from "../../pdk/http.ts";

const path = (initial: string, description: string) =>
  t.String({
    default: initial,
    maxLength: 256,
    pattern: "^/[A-Za-z0-9._~!$&'()*+,=:@/-]*$",
    errorMessage: "must be a path without query",
    description,
  });

const word = (description: string) => t.String({ minLength: 1, maxLength: 256, description });

export const schema = config({
  issuer: destination(
    url({
      maxLength: 1024,
      description:
        "Issuer of the identity provider, exactly as the provider writes it; https, or http on this machine",
    }),
  ),
  client_id: word("Id under which the provider knows this client"),
  client_secret: t.Optional(
    secret({ description: "Secret of the client; a public client has none" }),
  ),
  scopes: listOf(word("A scope"), {
    default: ["openid", "profile", "email"],
    maxItems: 50,
    description:
      "What is asked of the provider; add offline_access for refresh tokens where the provider wants it",
  }),
  redirect_path: path(
    "/_sluice/oidc/callback",
    "Path under every protected host to which the provider sends people back",
  ),
  logout_path: path("/_sluice/oidc/logout", "Path under every protected host that signs out"),
  post_logout_redirect_uri: nullable(
    url({ description: "Address to which people are sent after they have signed out" }),
  ),
  pkce: flag(true, "Bind the code to this sign-in (PKCE, S256)"),
  session: group(
    {
      cookie_name: t.String({
        default: "__Host-sluice_app",
        minLength: 1,
        maxLength: 64,
        pattern: "^[A-Za-z0-9_-]+$",
        errorMessage: "must be letters, digits, _ and -",
        description:
          "Name of the cookie that holds the session; over plain http a prefix __Host- or __Secure- is left off",
      }),
      same_site: oneOf(["Lax", "Strict", "None"], {
        default: "Lax",
        description: "Whether requests from other sites carry the session",
      }),
      idle: integer(3600, {
        minimum: 1,
        maximum: 31_536_000,
        description: "Seconds without a request after which a session is over",
      }),
      absolute: integer(28_800, {
        minimum: 1,
        maximum: 31_536_000,
        description: "Seconds after which a session is over in any case",
      }),
    },
    "The session of a browser, which is kept encrypted in a cookie",
  ),
  unauth_action: oneOf(["auth", "deny", "pass"], {
    default: "auth",
    description:
      "What becomes of requests without a session: pages are led to the sign-in and the rest is refused with 401; all are refused; all pass",
  }),
  bearer_allowed: flag(true, "Also let in who shows a JWT of the provider as a Bearer token"),
  bearer_audience: listOf(word("An audience"), {
    maxItems: 20,
    description: "Audiences of which a Bearer token must name one; empty: client_id",
  }),
  required_claims: t.Record(t.String(), t.Union([t.String(), t.Number(), t.Boolean()]), {
    default: {},
    maxProperties: 50,
    description:
      "Claims and the value that each must have or contain; who lacks one is refused with 403",
  }),
  groups_claim: t.String({
    default: "groups",
    minLength: 1,
    maxLength: 256,
    description: "Claim that lists the groups; dots lead into objects: realm_access.roles",
  }),
  allowed_groups: listOf(word("A group"), {
    description: "Groups of which people must be in one; empty: everybody may pass",
  }),
  headers: t.Record(t.String(), word("Name of a claim"), {
    default: {
      "X-Auth-User": "email",
      "X-Auth-Subject": "sub",
      "X-Auth-Name": "name",
      "X-Auth-Groups": "groups",
    },
    maxProperties: 50,
    description:
      "Header fields upstream and the claim that each holds; whatever a client sends under these names stays behind",
  }),
  forward_access_token: flag(false, "Send the access token upstream as Authorization: Bearer"),
  refresh: flag(true, "Renew the tokens of a session with its refresh token before they expire"),
  timeout: milliseconds(5000, "Milliseconds for each answer of the provider"),
  ...authenticationFields,
});

export type Config = (typeof schema)["static"];

/** Whether secrets may be sent there: encrypted, or without leaving the machine. */
export function isSafeUrl(text: unknown): text is string {
  const parsed = typeof text === "string" ? URL.parse(text) : null;
  if (parsed === null || parsed.username !== "" || parsed.password !== "") return false;
  if (parsed.protocol === "https:") return true;
  const { hostname } = parsed;
  const isHere =
    hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
  return parsed.protocol === "http:" && isHere;
}

/** Everything wrong beyond the schema. */
export function problemsOf(own: Config): { path: string; message: string }[] {
  const found: { path: string; message: string }[] = [];
  const check = (isFine: boolean, at: string, message: string) => {
    if (!isFine) found.push({ path: at, message });
  };
  check(isSafeUrl(own.issuer), "issuer", "must be https, or http on this machine");
  check(!/[?#]/.test(own.issuer), "issuer", "must have no query and no fragment");
  check(own.scopes.includes("openid"), "scopes", "must hold openid");
  for (const [at, scope] of own.scopes.entries())
    check(/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope), `scopes[${at}]`, "must be one word");
  for (const name of ["redirect_path", "logout_path"] as const)
    check(
      own[name].length > 1 && !/\/\/|\/\.{1,2}(?:\/|$)/.test(own[name]),
      name,
      "must name a page",
    );
  check(own.redirect_path !== own.logout_path, "logout_path", "must differ from redirect_path");
  check(
    own.session.idle <= own.session.absolute,
    "session.idle",
    "must not be longer than session.absolute",
  );
  for (const name of Object.keys(own.headers))
    check(
      isToken(name) && !GATEWAY_FIELDS.has(name.toLowerCase()) && isFieldValue(name),
      `headers.${name}`,
      "must be the name of a header field that does not belong to the gateway",
    );
  return found;
}
