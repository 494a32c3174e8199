// The policies of an application: what plugins do for it, in a few fields each; knows no plugin.
import { type Static, Type as t } from "@sinclair/typebox";
import { decode } from "./decode.ts";
import { flag, group, integer, nullable, oneOf } from "./fields.ts";
import { since } from "./resource.ts";

const login = group(
  {
    group: t.String({
      default: "users",
      minLength: 1,
      maxLength: 128,
      pattern: "^[\\x21-\\x2b\\x2d-\\x7e]+$",
      errorMessage: "must be printable ASCII without spaces and commas",
      description:
        "Group of the consumers that can sign in, with their credentials of the type basic; several applications can name the same one",
      form: {
        title: "User list",
        help: "Applications with the same list share its users",
        example: "family",
      },
    }),
  },
  "Require user name and password (HTTP Basic)",
);

const sso = t.Object(
  {
    provider: oneOf(["authelia", "authentik", "pocket_id", "oauth2_proxy"], {
      default: "authelia",
      description:
        "The server that signs users in; pocket_id: through oauth2-proxy, at whose address `url` points",
      form: {
        help: "Pocket ID signs users in through oauth2-proxy",
        options: {
          authelia: "Authelia",
          authentik: "Authentik",
          pocket_id: "Pocket ID",
          oauth2_proxy: "oauth2-proxy",
        },
      },
    }),
    url: t.String({
      maxLength: 2048,
      pattern: "^https?://[^\\s/?#@]+(?:/[^\\s?#]*)?$",
      errorMessage: "must be an http:// or https:// address, such as http://10.0.0.7:9091",
      description:
        "URL of that server, or of oauth2-proxy with a static upstream (`--upstream=static://202`)",
      form: {
        title: "URL",
        help: "Address at which the gateway asks Authelia, Authentik or oauth2-proxy",
        example: "http://10.0.0.7:9091",
      },
    }),
  },
  {
    additionalProperties: false,
    description:
      "Require a login at an SSO server, which decides about each request (forward authentication)",
  },
);

const rateLimit = group(
  {
    requests: integer(100, {
      minimum: 1,
      maximum: 1_000_000_000,
      description: "Requests per client and window; more get 429",
      form: { help: "Further ones get status 429" },
    }),
    window: integer(60, {
      minimum: 1,
      maximum: 31_536_000,
      description: "Length of the window in seconds",
      form: { unit: "s", help: "" },
    }),
  },
  "Limit requests per client address",
);

const headers = group(
  {
    security: flag(
      true,
      "X-Frame-Options, X-Content-Type-Options and Referrer-Policy; removes Server and X-Powered-By",
      {
        title: "Security headers",
        help: "No embedding in other sites, no MIME sniffing, no full URL to other sites, no Server and X-Powered-By",
      },
    ),
    set: t.Record(
      t.String({
        minLength: 1,
        maxLength: 256,
        pattern: "^[!#$%&'*+\\-.^_`|~0-9A-Za-z]+$",
      }),
      t.String({
        maxLength: 8192,
        pattern: "^[^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*$",
        errorMessage: "must be one line of text",
      }),
      {
        additionalProperties: false,
        default: {},
        maxProperties: 100,
        description: "Response headers to set, instead of the upstream's",
        form: { title: "Response headers", help: "They replace the upstream's" },
      },
    ),
  },
  "Set headers of responses",
);

const redirect = t.Object(
  {
    from: t.String({
      default: "/",
      maxLength: 1024,
      pattern: "^/[^\\s?#;]*$",
      errorMessage: "must be a path such as /old; / for all of them",
      description: "Path, with everything below it; /: all",
      form: { help: "This path and all below it; / for the whole site", example: "/old" },
    }),
    to: t.String({
      minLength: 1,
      maxLength: 2048,
      pattern: "^(?:https?://[^\\s]+|/[^\\s]*)$",
      errorMessage: "must be a path such as /new, or a URL such as https://www.example.com",
      description: "Path or URL that replaces `from`; the rest of the path and the query follow",
      form: {
        help: "The rest of the path and the query follow",
        example: "https://www.example.com",
      },
    }),
  },
  { additionalProperties: false, description: "Redirect clients to another URL (307)" },
);

const upload = group(
  {
    max_body_bytes: t.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 104_857_600,
      description: "Maximum size of a request body; larger ones get 413",
      form: { title: "Maximum size", unit: "B", help: "Larger uploads get status 413" },
    }),
  },
  "Limit the size of uploads",
);

const schema = group(
  {
    login: nullable(login, "User name and password; null: none", {
      title: "Password",
      help: "Visitors sign in with user name and password",
    }),
    sso: nullable(sso, "Login at an SSO server; null: none; not beside `login`", {
      title: "Single sign-on",
      help: "Visitors sign in at Authelia, Authentik, Pocket ID or oauth2-proxy",
    }),
    rate_limit: nullable(rateLimit, "Limit of requests per client address; null: none", {
      title: "Rate limit",
      help: "Limits the requests of each client address",
    }),
    headers: nullable(headers, "Headers of responses; null: the upstream's", {
      title: "Headers",
      help: "Adds headers to responses",
    }),
    redirect: nullable(redirect, "Redirect to another URL; null: none", {
      title: "Redirect",
      help: "Sends visitors to another address",
    }),
    upload: nullable(upload, "Limit of uploads; null: that of the listener", {
      title: "Upload size",
      help: "Rejects larger uploads",
    }),
  },
  "What applies to all requests of the application; the gateway keeps a plugin for each",
);

export const applicationPolicies = since(9, { ...schema, default: decode(schema, {}) });

export type ApplicationPolicies = Static<typeof schema>;
