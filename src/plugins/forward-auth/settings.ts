// The settings of forward-auth: their schema, what is wrong with them beyond it, and the presets; knows no request.
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
    description: "Address that is asked; with a preset, one without a path gets the preset's path",
  }),
  method: oneOf(["GET", "HEAD", "POST", "PUT"], {
    default: "GET",
    description: "Method with which it is asked",
  }),
  request_headers: listOf(headerName({ description: "Name of a header field" }), {
    default: ["Authorization", "Cookie"],
    maxItems: 50,
    description: "Header fields of the client that the other server gets to see",
  }),
  response_headers_to_upstream: listOf(headerName({ description: "Name of a header field" }), {
    maxItems: 50,
    description:
      "Header fields of the answer that go upstream when the request passes; whatever a client sends under these names stays behind. Empty: those of the preset",
  }),
  response_headers_to_client: listOf(headerName({ description: "Name of a header field" }), {
    default: ["Set-Cookie", "Location"],
    maxItems: 50,
    description:
      "Header fields of the answer that the client gets when the request does not pass, and when it does all but Location",
  }),
  send_x_forwarded: flag(
    true,
    "Describe the client's request in X-Forwarded-Method, -Proto, -Host, -Uri and -For",
  ),
  forward_body: flag(false, "Send the client's body as well; needs the method POST or PUT"),
  max_body: integer(1_048_576, {
    minimum: 1,
    maximum: 67_108_864,
    description: "Bytes of a body that are forwarded; a longer one is refused with 413",
  }),
  timeout: milliseconds(3000, "Milliseconds for the whole answer"),
  status_on_error: integer(503, {
    minimum: 400,
    maximum: 599,
    description: "Status when there is no answer",
  }),
  fail_open: flag(false, "Let requests pass when there is no answer, as if nobody was to be asked"),
  cache_ttl: integer(0, {
    minimum: 0,
    maximum: 86_400,
    description: "Seconds for which an answer that let a request pass is kept; 0: none is",
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
        "What tells clients apart in that memory beside method, scheme, host, path, query and address; must hold every field of request_headers",
    },
  ),
  preset: nullable(
    oneOf(["authelia", "authentik", "oauth2-proxy"], {
      description: "Defaults for a well-known server",
    }),
  ),
  anonymous_consumer: nullable(
    consumerReference({
      description: "Consumer that stands in for clients that do not pass; null: they are refused",
    }),
  ),
  hide_credentials: flag(false, "Keep the client's Authorization from going upstream"),
  run_on_preflight: flag(
    false,
    "Also ask about OPTIONS requests of browsers that ask for permission (CORS) and never carry credentials",
  ),
});

export type Config = (typeof schema)["static"];

interface Preset {
  readonly path: string;
  readonly toUpstream: readonly string[];
}

/** What their documentation says for other gateways that ask the same way. */
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

/** By these the servers of the presets tell pages, which are led to a sign-in, from programs, which get a 401. */
export const PRESET_REQUEST_HEADERS = ["Accept", "X-Requested-With", "User-Agent"];

/** Written anew for every answer. */
export const FRAMING: ReadonlySet<string> = new Set(["content-length", "content-encoding"]);

/** What a client could otherwise say in our name, or what would break the framing. */
const ownFields = (names: readonly string[]) =>
  names.flatMap((name, at) => {
    const plain = hyphenated(name.toLowerCase());
    return GATEWAY_FIELDS.has(plain) || plain.startsWith("x-forwarded-") ? [at] : [];
  });

/** Everything wrong beyond the schema. */
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
    found.push({ path: "forward_body", message: `cannot be used with the method ${own.method}` });
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
      message: `must hold what tells clients apart${missing.length === 0 ? "" : `: ${missing.map((name) => `header:${name}`).join(", ")}`}`,
    });
  return found;
}
