// key-auth: authenticates consumers by API key.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject } from "../pdk/response.ts";
import {
  authenticationFields,
  hasExpired,
  isExempt,
  refuse,
  validMaterial,
} from "../pdk/authentication.ts";
import type { RequestContext } from "../pdk/context.ts";
import { hashToken } from "../pdk/crypto.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { config, flag, headerName, listOf } from "../pdk/fields.ts";
import { cookieValues } from "../pdk/http.ts";
import type { PluginKit } from "../pdk/kit.ts";

const name = (description: string) => t.String({ minLength: 1, maxLength: 256, description });

const schema = config({
  header_names: listOf(headerName({ description: "Name of a header" }), {
    default: ["X-API-Key", "apikey"],
    maxItems: 10,
    description: "Headers that may have the key",
  }),
  query_names: listOf(name("Name of a query parameter"), {
    maxItems: 10,
    description:
      "Query parameters that may have the key; none by default, because URLs end up in logs",
  }),
  cookie_names: listOf(name("Name of a cookie"), {
    maxItems: 10,
    description: "Cookies that may have the key",
  }),
  key_in_body: flag(
    false,
    "Also look for the key in the body: a member of a JSON object or a form field with one of the header names; bodies are not changed, so the key stays there",
  ),
  ...authenticationFields,
});

/** Longer bodies are not searched. */
const MAX_BODY_BYTES = 1_048_576;

const CHALLENGE = "ApiKey";

type Config = (typeof schema)["static"];

/** The settings, and the header names in lower case. */
interface Prepared {
  readonly own: Config;
  readonly fields: readonly string[];
  readonly kit: PluginKit;
}

/** All keys of the request. */
function keysOf(context: RequestContext, { own, fields }: Prepared) {
  const { query_names, cookie_names } = own;
  const keys: string[] = [];
  for (const field of fields) {
    const value = context.header(field);
    if (value !== null) keys.push(value);
  }
  for (const parameter of query_names)
    for (const [key, value] of new URLSearchParams(context.query))
      if (key === parameter) keys.push(value);
  for (const cookie of cookie_names) keys.push(...cookieValues(context.header("cookie"), cookie));
  return keys;
}

async function keyInBody(context: RequestContext, names: readonly string[]): Promise<string[]> {
  const type = context.header("content-type") ?? "";
  const isJson = /^application\/(?:[^;]+\+)?json\b/i.test(type);
  if (!isJson && !/^application\/x-www-form-urlencoded\b/i.test(type)) return [];
  const bytes = await context.readBody(MAX_BODY_BYTES);
  if (bytes === null) return [];
  const text = new TextDecoder().decode(bytes);
  if (!isJson) {
    const form = new URLSearchParams(text);
    return names.flatMap((each) => form.getAll(each));
  }
  try {
    const document: unknown = JSON.parse(text);
    if (typeof document !== "object" || document === null) return [];
    const members = document as Readonly<Record<string, unknown>>;
    return names.flatMap((each) => {
      const value = Object.hasOwn(members, each) ? members[each] : undefined;
      return typeof value === "string" ? [value] : [];
    });
  } catch {
    return [];
  }
}

export default definePlugin({
  name: "key-auth",
  summary: "Authenticates consumers by API key",
  description: `The gateway looks for the key in headers and, where configured, in query parameters, cookies and the body. Keys belong to
consumers (\`POST /api/v1/consumers/:id/credentials\` with \`{"type": "key"}\`); only their SHA-256 is stored, and a lookup takes
constant time, also with a million keys. A request with several keys is rejected, whether they are valid or not.`,
  group: "authentication",
  order: 8300,
  phases: ["auth"],
  scopes: authScopes,
  config: schema,
  example: { header_names: ["X-API-Key"] },
  onError: "closed",
  ignoresPath: true,
  create(own, kit) {
    const fields = own.header_names.map((name) => name.toLowerCase());
    const prepared = { own, fields, kit };
    return {
      ...(own.hide_credentials
        ? { authSkipped: (context: RequestContext) => hide(context, prepared) }
        : {}),
      auth(context) {
        if (isExempt(context, own)) return undefined;
        const keys = keysOf(context, prepared);
        if (keys.length === 0 && own.key_in_body && context.hasBody)
          return keyInBody(context, own.header_names).then((found) =>
            judge(found, context, prepared),
          );
        return judge(keys, context, prepared);
      },
    };
  },
});

function judge(keys: readonly string[], context: RequestContext, prepared: Prepared): Outcome {
  const { own, kit } = prepared;
  const [key] = keys;
  const no = (reason: string, detail: string) =>
    refuse(context, own, { reason, detail, challenge: CHALLENGE });
  if (key === undefined || key === "") return no("auth.key.missing", "an API key is required");
  // Ambiguous. The server joins repeated headers with a comma.
  if (keys.length > 1 || key.includes(", "))
    return reject(401, "auth.key.duplicate", {
      detail: "the request has several API keys",
      headers: { "WWW-Authenticate": `${CHALLENGE} realm="${own.realm}"` },
    });
  const hash = hashToken(key);
  const credential = context.consumers.credential("key", hash);
  if (credential === null) return no("auth.key.unknown", "the API key is not valid");
  const now = Date.now();
  const isPresent = credential.hash === hash && !hasExpired(credential, now);
  if (!isPresent && !validMaterial(credential, now).some((material) => material.hash === hash))
    return no("auth.key.expired", "the API key is not valid");
  context.authenticate(credential.consumer, { credential });
  kit.used(credential.id);
  if (own.hide_credentials) hide(context, prepared);
  return undefined;
}

/** Also removes headers that the client has not sent: an application may read `x_api_key` as one of them. */
function hide({ upstream }: RequestContext, { own, fields }: Prepared): void {
  for (const field of fields) upstream.removeHeader(field);
  for (const parameter of own.query_names) upstream.removeQuery(parameter);
  for (const cookie of own.cookie_names) upstream.removeCookie(cookie);
}
