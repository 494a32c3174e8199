// forward-auth: an external server authorizes each request; knows those servers only by presets.
import { type Outcome, reject, reply } from "../pdk/response.ts";
import { isExempt } from "../pdk/authentication.ts";
import { Cache } from "../pdk/cache.ts";
import type { RequestContext } from "../pdk/context.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { connectionOptions, HOP_BY_HOP } from "../pdk/http.ts";
import type { CalloutResponse, PluginKit } from "../pdk/kit.ts";
import {
  type Config,
  FRAMING,
  PRESET_REQUEST_HEADERS,
  presets,
  problemsOf,
  schema,
} from "./forward-auth/settings.ts";

const MAX_KEPT = 10_000;

/** Prepared once per instance. */
interface Prepared {
  readonly own: Config;
  readonly kit: PluginKit;
  readonly url: string;
  /** In lower case, like all names here. */
  readonly asked: readonly string[];
  readonly toUpstream: readonly string[];
  readonly toClient: readonly string[];
  readonly passed: Cache<Passed>;
  readonly key: Uint8Array;
  /** Memory key of the headers for the client's response. */
  readonly memoryKey: object;
}

/** The headers of a response that allows a request. */
interface Passed {
  readonly upstream: readonly (readonly [string, string])[];
  readonly client: readonly (readonly [string, string])[];
}

function prepare(own: Config, kit: PluginKit): Prepared {
  const preset = own.preset === null ? null : presets[own.preset];
  const address = new URL(own.url);
  if (preset !== null && address.pathname === "/") address.pathname = preset.path;
  const lower = (names: readonly string[]) => [...new Set(names.map((name) => name.toLowerCase()))];
  const listed = own.response_headers_to_upstream;
  return {
    own,
    kit,
    url: address.href,
    asked: lower([...own.request_headers, ...(preset === null ? [] : PRESET_REQUEST_HEADERS)]),
    toUpstream: lower(listed.length === 0 && preset !== null ? preset.toUpstream : listed),
    toClient: lower(own.response_headers_to_client),
    passed: new Cache({ maxEntries: MAX_KEPT, ttlMs: own.cache_ttl * 1000 }),
    key: kit.deriveKey("answers"),
    memoryKey: {},
  };
}

/** Null: the request does not identify the client, so the response is not cached. */
function cacheKey(context: RequestContext, { own, asked, key }: Prepared): string | null {
  if (own.cache_ttl === 0 || context.hasBody) return null;
  const parts = own.cache_key.map((part) => {
    const [kind, name = ""] = part.split(/:(.*)/s);
    return kind === "cookie" ? context.cookie(name) : context.header(name.toLowerCase());
  });
  if (parts.every((part) => part === null)) return null;
  const { method, scheme, clientHost, target } = context;
  const fixed = [method, scheme, clientHost, target, context.clientAddress()];
  const listed = new Set(own.request_headers.map((name) => name.toLowerCase()));
  // Headers of the preset, which are not in the settings.
  const more = asked.filter((name) => !listed.has(name)).map((name) => context.header(name));
  const text = JSON.stringify([fixed, parts, more]);
  return new Bun.CryptoHasher("sha256", key).update(text).digest("base64url");
}

function fieldsOf(context: RequestContext, { own, asked }: Prepared): Record<string, string> {
  const fields: Record<string, string> = {};
  const named = connectionOptions(context.header("connection"));
  for (const name of asked) {
    const value = context.header(name);
    if (value !== null && !named.includes(name)) fields[name] = value;
  }
  if (!own.send_x_forwarded) return fields;
  return {
    ...fields,
    "x-forwarded-method": context.method,
    "x-forwarded-proto": context.scheme,
    "x-forwarded-host": context.clientHost,
    "x-forwarded-uri": context.target,
    "x-forwarded-for": context.clientAddress(),
  };
}

async function ask(context: RequestContext, prepared: Prepared): Promise<Outcome> {
  const { own, kit, passed } = prepared;
  const key = cacheKey(context, prepared);
  const known = key === null ? undefined : passed.get(key);
  if (known !== undefined) return pass(context, known, prepared);
  const headers = fieldsOf(context, prepared);
  let body: Uint8Array | null = null;
  if (own.forward_body && context.hasBody) {
    body = await context.readBody(own.max_body);
    if (body === null)
      return reject(413, "auth.forward.body", {
        detail: "the body is too large",
        token: "http_request_error",
      });
    const type = context.header("content-type");
    if (type !== null) headers["content-type"] ??= type;
  }
  const { method, timeout: timeoutMs } = own;
  let response: CalloutResponse;
  try {
    response = await kit.callout({ url: prepared.url, method, headers, body, timeoutMs });
  } catch (error) {
    return withoutResponse(context, error as Error, prepared);
  }
  if (response.status < 200 || response.status > 299) return refused(context, response, prepared);
  const fresh: Passed = {
    upstream: copied(response.headers, prepared.toUpstream),
    client: copied(
      response.headers,
      prepared.toClient.filter((name) => name !== "location"),
    ),
  };
  // A cookie belongs to one response.
  if (key !== null && !response.headers.has("set-cookie")) passed.set(key, fresh);
  return pass(context, fresh, prepared);
}

/** The listed headers, each Set-Cookie by itself; never hop-by-hop headers. */
function copied(headers: Headers, names: readonly string[]): (readonly [string, string])[] {
  const named = connectionOptions(headers.get("connection"));
  return names.flatMap((name): (readonly [string, string])[] => {
    if (HOP_BY_HOP.has(name) || named.includes(name)) return [];
    if (name === "set-cookie")
      return headers.getSetCookie().map((value): [string, string] => [name, value]);
    const value = headers.get(name);
    return value === null ? [] : [[name, value]];
  });
}

function pass(context: RequestContext, { upstream, client }: Passed, prepared: Prepared): Outcome {
  for (const [name, value] of upstream)
    if (value !== "") context.upstream.setHeader(name, asLatin1(value));
  if (prepared.own.hide_credentials && !upstream.some(([name]) => name === "authorization"))
    context.upstream.removeHeader("authorization");
  const [, name = null] = upstream.find(([, value]) => value !== "") ?? [];
  // A client that was authenticated before keeps its identity.
  if (name !== null && (context.consumer === null || context.isAnonymous))
    context.authenticate(null, { credentialId: name });
  if (client.length > 0) context.memory.set(prepared.memoryKey, client);
  return undefined;
}

/** Bytes above 127 in a response are read as Latin-1; any other character is no field value. */
const asLatin1 = (value: string) => value.replace(/[^\t\x20-\x7e\x80-\xff]/g, "?").trim();

function useAnonymous(context: RequestContext, { own }: Prepared): boolean {
  const { anonymous_consumer: id } = own;
  const consumer = id === null ? null : context.consumers.byId(id);
  if (consumer === null || context.authMode === "require") return false;
  if (context.consumer === null) context.authenticate(consumer, { isAnonymous: true });
  return true;
}

function withoutResponse(context: RequestContext, error: Error, prepared: Prepared): Outcome {
  const { own, kit } = prepared;
  kit.log("warn", "the authorization server did not respond", {
    error: error.message,
  });
  if (own.fail_open) {
    context.note("auth.forward.open");
    return undefined;
  }
  return reject(own.status_on_error, "auth.forward.unavailable", {
    detail: "the authorization server is unavailable",
    token: "proxy_internal_response",
  });
}

function refused(context: RequestContext, response: CalloutResponse, prepared: Prepared): Outcome {
  const { status, headers, body } = response;
  if (useAnonymous(context, prepared)) {
    context.note("auth.forward.denied");
    return undefined;
  }
  if (status < 200 || status > 599)
    return withoutResponse(context, new Error("the status is not valid"), prepared);
  const out = new Headers({ "cache-control": "no-store" });
  // The status or the body cannot be understood without these two.
  const names = new Set(["content-type", "www-authenticate", ...prepared.toClient]);
  for (const [name, value] of copied(headers, [...names]))
    if (name === "set-cookie") out.append(name, value);
    else if (!FRAMING.has(name)) out.set(name, value);
  return reply(status, "auth.forward.denied", { headers: out, body });
}

export default definePlugin({
  name: "forward-auth",
  summary: "Delegates authorization of each request to an external HTTP service",
  description: `The gateway asks the server at \`url\` about every request, like Traefik and Caddy: Authelia, authentik, oauth2-proxy and many
others support this. A response with a status from 200 to 299 allows the request, and the headers in
\`response_headers_to_upstream\` go with it. Any other response goes to the client: status, body, Content-Type, WWW-Authenticate
and the headers in \`response_headers_to_client\`.

The server receives the headers in \`request_headers\` and X-Forwarded-*. A \`preset\` sets the path and the response headers, and
also sends Accept, X-Requested-With and User-Agent, by which these servers distinguish browsers from programs. With
\`oauth2-proxy\` an unknown client gets 401; to redirect it to the login, give the proxy a static upstream, omit the preset, and set
the URL of its root and the names of the headers.

\`cache_ttl\` saves requests to the server, but a user who has logged out keeps access until the entry expires. Responses that deny
or set a cookie are never cached. \`fail_open\` allows every request while the server is down: avoid it.

The first header of \`response_headers_to_upstream\` in the response also becomes X-Credential-Identifier, and identifies the
client for other plugins.

The gateway removes what clients send under the names in \`response_headers_to_upstream\`, also for requests that \`when\` excludes.`,
  group: "authentication",
  order: 7900,
  phases: ["auth", "response"],
  scopes: authScopes,
  config: schema,
  example: { url: "http://127.0.0.1:9091", preset: "authelia" },
  onError: "closed",
  check: problemsOf,
  create(own, kit) {
    const prepared = prepare(own, kit);
    const { memoryKey, toUpstream } = prepared;
    return {
      stripIdentity({ upstream }) {
        for (const name of toUpstream) upstream.removeHeader(name);
      },
      auth: (context) => (isExempt(context, own) ? undefined : ask(context, prepared)),
      authSkipped({ upstream }) {
        if (own.hide_credentials) upstream.removeHeader("authorization");
      },
      response(context, { headers }) {
        const fields = context.memory.get(memoryKey) as Passed["client"] | undefined;
        for (const [name, value] of fields ?? [])
          if (name === "set-cookie") headers.append(name, value);
          else headers.set(name, value);
      },
    };
  },
});
