// The catalogue of authentication and access plugins as data: names, defaults, scopes and what happens when one fails. Runs nothing.
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { plugins } from "../../support/plugins.ts";

/** Stands for a required field. */
const REQUIRED = Symbol("required");
/** Stands for an optional field without a default. */
const OPTIONAL = Symbol("optional");

const common = {
  anonymous_consumer: null,
  hide_credentials: true,
  realm: "sluice",
  run_on_preflight: false,
};

interface Entry {
  readonly scopes: "auth" | "http" | "edge" | "edge+stream";
  readonly onError: "open" | "closed";
  /** By path. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** What this product adds, see docs/decisions/0013-plugins-beyond-the-specification.md. */
  readonly added?: Readonly<Record<string, unknown>>;
}

const MEBIBYTE = 1_048_576;

const catalogue: Readonly<Record<string, Entry>> = {
  "key-auth": {
    scopes: "auth",
    onError: "closed",
    fields: {
      ...common,
      header_names: ["X-API-Key", "apikey"],
      query_names: [],
      cookie_names: [],
      key_in_body: false,
    },
  },
  "basic-auth": {
    scopes: "auth",
    onError: "closed",
    fields: { ...common, users: [] },
    added: { consumers: true },
  },
  jwt: {
    scopes: "auth",
    onError: "closed",
    fields: {
      ...common,
      header_names: ["Authorization"],
      cookie_names: [],
      query_names: [],
      algorithms: ["RS256", "ES256", "EdDSA"],
      jwks_url: null,
      jwks: null,
      issuer: [],
      jwks_cache_ttl: 300,
      jwks_refresh_min_interval: 10,
      audience: [],
      claims_required: {},
      scopes_required: [],
      key_claim: "iss",
      consumer_claim: null,
      clock_skew: 30,
      maximum_expiration: 0,
      claims_to_headers: {},
    },
  },
  "hmac-auth": {
    scopes: "auth",
    onError: "closed",
    fields: {
      ...common,
      clock_skew: 300,
      required_components: ["@method", "@target-uri"],
      algorithms: ["hmac-sha256", "ed25519"],
      validate_body: false,
      max_body: MEBIBYTE,
      nonce_cache: false,
    },
  },
  oidc: {
    scopes: "auth",
    onError: "closed",
    fields: {
      ...common,
      issuer: REQUIRED,
      client_id: REQUIRED,
      client_secret: OPTIONAL,
      scopes: ["openid", "profile", "email"],
      redirect_path: "/_sluice/oidc/callback",
      logout_path: "/_sluice/oidc/logout",
      post_logout_redirect_uri: null,
      pkce: true,
      "session.cookie_name": "__Host-sluice_app",
      "session.same_site": "Lax",
      "session.idle": 3600,
      "session.absolute": 28_800,
      unauth_action: "auth",
      bearer_allowed: true,
      required_claims: {},
      groups_claim: "groups",
      allowed_groups: [],
      headers: {
        "X-Auth-User": "email",
        "X-Auth-Subject": "sub",
        "X-Auth-Name": "name",
        "X-Auth-Groups": "groups",
      },
      forward_access_token: false,
      refresh: true,
      timeout: 5000,
    },
    added: { bearer_audience: [] },
  },
  "forward-auth": {
    scopes: "auth",
    onError: "closed",
    fields: {
      anonymous_consumer: null,
      hide_credentials: false,
      run_on_preflight: false,
      url: REQUIRED,
      method: "GET",
      request_headers: ["Authorization", "Cookie"],
      response_headers_to_upstream: [],
      response_headers_to_client: ["Set-Cookie", "Location"],
      send_x_forwarded: true,
      forward_body: false,
      max_body: MEBIBYTE,
      timeout: 3000,
      status_on_error: 503,
      fail_open: false,
      cache_ttl: 0,
      cache_key: [],
      preset: null,
    },
  },
  "ldap-auth": {
    scopes: "auth",
    onError: "closed",
    fields: {
      ...common,
      url: REQUIRED,
      bind_dn: REQUIRED,
      base_dn: null,
      filter: "(uid=${username})",
      start_tls: false,
      cache_ttl: 60,
    },
    added: {
      bind_password: OPTIONAL,
      ca: null,
      verify_certificate: true,
      group_base_dn: null,
      group_filter: "(|(member=${dn})(uniqueMember=${dn})(memberUid=${username}))",
      group_attribute: "cn",
      consumer_by: null,
      timeout: 5000,
    },
  },
  "mtls-auth": {
    scopes: "auth",
    onError: "closed",
    fields: {
      ...common,
      allowed_fingerprints: [],
      allowed_san: [],
      consumer_by: null,
      forward_headers: true,
    },
  },
  "access-policy": {
    scopes: "http",
    onError: "closed",
    fields: { rules: [], default: "continue", deny_status: 403, deny_body: null },
  },
  "ip-restriction": {
    scopes: "edge+stream",
    onError: "closed",
    fields: { allow: [], deny: [], status: 403, message: null },
    added: { stream_reset: false },
  },
  acl: {
    scopes: "auth",
    onError: "closed",
    fields: { allow: [], deny: [], hide_groups_header: true },
  },
  "bot-detection": {
    scopes: "edge",
    onError: "open",
    fields: {
      deny: [],
      allow: [],
      presets: ["ai-crawlers", "scanners"],
      missing_ua: "allow",
      status: 403,
      tarpit_ms: 0,
    },
  },
  "request-size-limit": {
    scopes: "http",
    onError: "closed",
    fields: {
      max_body_bytes: 10_485_760,
      max_headers_bytes: 16_384,
      max_uri_bytes: 8192,
      require_content_length: false,
    },
  },
  csrf: {
    scopes: "http",
    onError: "closed",
    fields: {},
    added: {
      mode: "origin",
      allowed_origins: [],
      missing_origin: "allow",
      cookie_name: "sluice_csrf",
      header_name: "X-CSRF-Token",
    },
  },
  cors: {
    scopes: "edge",
    onError: "open",
    fields: {
      origins: [],
      methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
      allow_headers: "reflect",
      expose_headers: [],
      credentials: false,
      max_age: 600,
      private_network: false,
      preflight_continue: false,
    },
  },
  "security-headers": {
    scopes: "http",
    onError: "open",
    fields: {
      "hsts.max_age": 31_536_000,
      "hsts.include_subdomains": false,
      "hsts.preload": false,
      frame_options: "SAMEORIGIN",
      nosniff: true,
      referrer_policy: "strict-origin-when-cross-origin",
      csp: null,
      permissions_policy: null,
      coop: null,
      corp: null,
      remove: ["Server", "X-Powered-By"],
    },
  },
  redirect: {
    scopes: "edge",
    onError: "closed",
    fields: {
      to: null,
      regex: null,
      scheme: "https",
      status: 308,
      keep_path: true,
      keep_query: true,
    },
    added: { prefix: null },
  },
  respond: {
    scopes: "edge",
    onError: "closed",
    fields: {
      status: 503,
      headers: {},
      body: null,
      template: null,
      json: OPTIONAL,
      retry_after: null,
      "bypass.cidr": [],
      "bypass.header": {},
      "bypass.cookie": {},
      percent: 100,
      delay_ms: 0,
    },
    added: { after_authentication: false },
  },
  "request-id": {
    scopes: "edge",
    onError: "open",
    fields: {
      header: "X-Request-Id",
      generator: "uuidv7",
      trust_incoming: "trusted_proxies",
      echo: true,
    },
    added: { traceparent: "create", trace_sampled: true },
  },
};

const scopes: Readonly<Record<Entry["scopes"], readonly string[]>> = {
  auth: ["global", "service", "route"],
  edge: ["global", "service", "route"],
  "edge+stream": ["global", "service", "route", "stream_route"],
  http: ["global", "service", "route", "consumer", "consumer_route", "consumer_service"],
};

/** Defaults by path; includes those of groups, also nullable ones. */
function defaultsOf(schema: TSchema, path = ""): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const required: readonly string[] = schema["required"] ?? [];
  for (const [name, field] of Object.entries(schema["properties"] as Record<string, TSchema>)) {
    const variants = (field["anyOf"] as TSchema[] | undefined) ?? [field];
    const group = variants.find((each) => each["properties"] !== undefined);
    const isGroup = group !== undefined && Bun.deepEquals(field.default, {});
    if (isGroup) Object.assign(found, defaultsOf(group, `${path}${name}.`));
    else if (field.default !== undefined) found[path + name] = field.default;
    else found[path + name] = required.includes(name) ? REQUIRED : OPTIONAL;
  }
  return found;
}

describe.each(Object.entries(catalogue))("%s", (name, entry) => {
  const plugin = plugins.find((each) => each.name === name);

  test("has the fields of the catalogue with their defaults, and only the documented additions", () => {
    expect(defaultsOf(plugin?.config as TSchema)).toEqual({ ...entry.fields, ...entry.added });
  });

  test("has the scopes and the failure mode of the catalogue", () => {
    expect<readonly string[]>(plugin?.scopes ?? []).toEqual(scopes[entry.scopes]);
    expect(plugin?.onError).toBe(entry.onError);
  });
});
