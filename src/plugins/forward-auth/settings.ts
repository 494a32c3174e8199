// The settings of forward-auth: schema, validation and presets; knows no request.
import { Type as t } from "@sinclair/typebox";
import {
  config,
  consumerReference,
  flag,
  headerName,
  integer,
  listOf,
  milliseconds,
  nullable,
  oneOf,
  url,
} from "../../pdk/fields.ts";
import { GATEWAY_FIELDS, HOP_BY_HOP, hyphenated } from "../../pdk/http.ts";

export const schema = config({
  url: url({
    maxLength: 2048,
    description: "URL of the authorization server; with a preset, the default path is the preset's",
  }),
  method: oneOf(["GET", "HEAD", "POST", "PUT"], {
    default: "GET",
    description: "Method of the request to it",
  }),
  request_headers: listOf(headerName({ description: "Name of a header" }), {
    default: ["Authorization", "Cookie"],
    maxItems: 50,
    description: "Client headers to send to the authorization server",
  }),
  response_headers_to_upstream: listOf(headerName({ description: "Name of a header" }), {
    maxItems: 50,
    description:
      "Response headers to send upstream with an allowed request; the gateway removes what clients send under these names. Empty: those of the preset",
  }),
  response_headers_to_client: listOf(headerName({ description: "Name of a header" }), {
    default: ["Set-Cookie", "Location"],
    maxItems: 50,
    description:
      "Response headers to send to the client when the request is denied and, except Location, when it is allowed",
  }),
  send_x_forwarded: flag(true, "Send X-Forwarded-Method, -Proto, -Host, -Uri and -For"),
  forward_body: flag(false, "Send the client's body; needs the method POST or PUT"),
  max_body: integer(1_048_576, {
    minimum: 1,
    maximum: 67_108_864,
    description: "Maximum size of a forwarded body in bytes; longer ones get 413",
  }),
  timeout: milliseconds(3000, "Timeout for the complete response in milliseconds"),
  status_on_error: integer(503, {
    minimum: 400,
    maximum: 599,
    description: "Status when the server does not respond",
  }),
  fail_open: flag(false, "Allow requests when the server does not respond"),
  cache_ttl: integer(0, {
    minimum: 0,
    maximum: 86_400,
    description: "Seconds for which an allowing response is cached; 0: not cached",
  }),
  cache_key: listOf(
    t.String({
      maxLength: 256,
      pattern: "^(?:header|cookie):[!#$%&'*+\\-.^_`|~0-9A-Za-z]+$",
      errorMessage: "must be header:<name> or cookie:<name>",
      description: "header:<name> or cookie:<name>",
    }),
    {
      maxItems: 20,
      description:
        "Parts of the cache key beside method, scheme, host, path, query and address; must contain every header of request_headers",
    },
  ),
  preset: nullable(
    oneOf(["authelia", "authentik", "oauth2-proxy"], {
      description: "Defaults for a known server",
    }),
  ),
  anonymous_consumer: nullable(
    consumerReference({
      description: "Consumer for clients that are denied; null: they are rejected",
    }),
  ),
  hide_credentials: flag(false, "Remove the client's Authorization from the upstream request"),
  run_on_preflight: flag(
    false,
    "Also check CORS preflight requests, which never carry credentials",
  ),
});

export type Config = (typeof schema)["static"];

interface Preset {
  readonly path: string;
  readonly toUpstream: readonly string[];
}

/** From the servers' documentation for gateways with the same protocol. */
export const presets: Readonly<Record<"authelia" | "authentik" | "oauth2-proxy", Preset>> = {
  authelia: {
    path: "/api/authz/forward-auth",
    toUpstream: ["Remote-User", "Remote-Groups", "Remote-Email", "Remote-Name"],
  },
  authentik: {
    path: "/outpost.goauthentik.io/auth/traefik",
    toUpstream: [
      ...["username", "groups", "entitlements", "email", "name", "uid", "jwt"],
      ...["meta-jwks", "meta-outpost", "meta-provider", "meta-app", "meta-version"],
    ].map((name) => `X-authentik-${name}`),
  },
  "oauth2-proxy": {
    path: "/oauth2/auth",
    toUpstream: [...["User", "Groups", "Email", "Preferred-Username", "Access-Token"]].map(
      (name) => `X-Auth-Request-${name}`,
    ),
  },
};

/** By these the servers of the presets distinguish pages, which they redirect to a login, from programs, which get 401. */
export const PRESET_REQUEST_HEADERS = ["Accept", "X-Requested-With", "User-Agent"];

/** Set by the gateway for every response. */
export const FRAMING: ReadonlySet<string> = new Set(["content-length", "content-encoding"]);

/** Headers with which a client could impersonate the gateway, or break the framing. */
const ownFields = (names: readonly string[]) =>
  names.flatMap((name, at) => {
    const plain = hyphenated(name.toLowerCase());
    return GATEWAY_FIELDS.has(plain) || plain.startsWith("x-forwarded-") ? [at] : [];
  });

/** All problems beyond the schema. */
export function problemsOf(own: Config): { path: string; message: string }[] {
  const message = "is reserved for the gateway or hop-by-hop, and is never copied";
  const lists = ["request_headers", "response_headers_to_upstream"] as const;
  const found = lists.flatMap((list) =>
    ownFields(own[list]).map((at) => ({ path: `${list}[${at}]`, message })),
  );
  for (const [at, name] of own.response_headers_to_client.entries())
    if (HOP_BY_HOP.has(name.toLowerCase()) || FRAMING.has(name.toLowerCase()))
      found.push({ path: `response_headers_to_client[${at}]`, message });
  if (own.forward_body && (own.method === "GET" || own.method === "HEAD"))
    found.push({
      path: "forward_body",
      message: `needs the method POST or PUT instead of ${own.method}`,
    });
  if (own.cache_ttl === 0) return found;
  if (own.forward_body)
    found.push({ path: "cache_ttl", message: "must be 0 when bodies are forwarded" });
  const keys = own.cache_key.map((part) => part.toLowerCase());
  const isCovered = (name: string) =>
    keys.includes(`header:${name}`) ||
    (name === "cookie" && keys.some((part) => part.startsWith("cookie:")));
  const missing = own.request_headers.filter((name) => !isCovered(name.toLowerCase()));
  if (own.cache_key.length === 0 || missing.length > 0)
    found.push({
      path: "cache_key",
      message: `must contain what identifies clients${missing.length === 0 ? "" : `: ${missing.map((name) => `header:${name}`).join(", ")}`}`,
    });
  return found;
}
