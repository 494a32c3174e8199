// The settings of oidc: schema and validation; knows no request.
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
import { isSafeUrl } from "../../pdk/net.ts";

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
        "Issuer URL of the identity provider, exactly as the provider writes it; https, or http on this machine",
    }),
  ),
  client_id: word("Client id at the provider"),
  client_secret: t.Optional(secret({ description: "Client secret; a public client has none" })),
  scopes: listOf(word("A scope"), {
    default: ["openid", "profile", "email"],
    maxItems: 50,
    description:
      "Requested scopes; add offline_access for refresh tokens where the provider requires it",
  }),
  redirect_path: path("/_sluice/oidc/callback", "Path of the redirect URI on every protected host"),
  logout_path: path("/_sluice/oidc/logout", "Path of the logout on every protected host"),
  post_logout_redirect_uri: nullable(url({ description: "URL to redirect to after the logout" })),
  pkce: flag(true, "Proof Key for Code Exchange (PKCE, S256)"),
  session: group(
    {
      cookie_name: t.String({
        default: "__Host-sluice_app",
        minLength: 1,
        maxLength: 64,
        pattern: "^[A-Za-z0-9_-]+$",
        errorMessage: "must be letters, digits, _ and -",
        description:
          "Name of the session cookie; over plain http the gateway omits a prefix __Host- or __Secure-",
      }),
      same_site: oneOf(["Lax", "Strict", "None"], {
        default: "Lax",
        description: "SameSite attribute of the session cookie",
      }),
      idle: integer(3600, {
        minimum: 1,
        maximum: 31_536_000,
        description: "Idle timeout of a session in seconds",
      }),
      absolute: integer(28_800, {
        minimum: 1,
        maximum: 31_536_000,
        description: "Maximum lifetime of a session in seconds",
      }),
    },
    "Session, stored encrypted in a cookie",
  ),
  unauth_action: oneOf(["auth", "deny", "pass"], {
    default: "auth",
    description:
      "Action for requests without a session: redirect pages to the login and reject others with 401; reject all; allow all",
  }),
  bearer_allowed: flag(true, "Also accept JWTs of the provider as Bearer tokens"),
  bearer_audience: listOf(word("An audience"), {
    maxItems: 20,
    description: "Audiences of which a Bearer token must have one; empty: client_id",
  }),
  required_claims: t.Record(t.String(), t.Union([t.String(), t.Number(), t.Boolean()]), {
    default: {},
    maxProperties: 50,
    description:
      "Required claims and the value that each must have or contain; users without one get 403",
  }),
  groups_claim: t.String({
    default: "groups",
    minLength: 1,
    maxLength: 256,
    description: "Claim with the groups; dots separate nested members: realm_access.roles",
  }),
  allowed_groups: listOf(word("A group"), {
    description: "Groups of which a user must be in one; empty: all users are allowed",
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
      "Upstream headers and their claims; the gateway removes what clients send under these names",
  }),
  forward_access_token: flag(false, "Send the access token upstream as Authorization: Bearer"),
  refresh: flag(true, "Renew the tokens of a session before they expire"),
  timeout: milliseconds(5000, "Timeout of each request to the provider in milliseconds"),
  ...authenticationFields,
});

export type Config = (typeof schema)["static"];

/** All problems beyond the schema. */
export function problemsOf(own: Config): { path: string; message: string }[] {
  const found: { path: string; message: string }[] = [];
  const check = (isFine: boolean, at: string, message: string) => {
    if (!isFine) found.push({ path: at, message });
  };
  check(isSafeUrl(own.issuer), "issuer", "must be https, or http on this machine");
  check(!/[?#]/.test(own.issuer), "issuer", "must have no query and no fragment");
  check(own.scopes.includes("openid"), "scopes", "must contain openid");
  for (const [at, scope] of own.scopes.entries())
    check(/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope), `scopes[${at}]`, "must be one word");
  for (const name of ["redirect_path", "logout_path"] as const)
    check(
      own[name].length > 1 && !/\/\/|\/\.{1,2}(?:\/|$)/.test(own[name]),
      name,
      "must be a page",
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
      "must be a valid header name that is not reserved for the gateway",
    );
  return found;
}
