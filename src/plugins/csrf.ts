// csrf: rejects cross-origin requests that carry a user's cookies.
import { createHmac, randomBytes } from "node:crypto";
import { Type as t } from "@sinclair/typebox";
import { reject, type Rejection } from "../pdk/response.ts";
import type { RequestContext } from "../pdk/context.ts";
import { hashToken, isSameHash } from "../pdk/crypto.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, headerName, listOf, oneOf, textOrRegex } from "../pdk/fields.ts";
import { cookieValues } from "../pdk/http.ts";
import { compileOrigins, originProblem } from "../pdk/origin.ts";

const schema = config({
  mode: oneOf(["origin", "double_submit"], {
    default: "origin",
    description:
      "origin: check Sec-Fetch-Site and Origin; double_submit: pages send the value of a cookie in a header",
  }),
  allowed_origins: listOf(
    textOrRegex({
      description:
        '`https://app.example.com`, `https://*.example.com` for all hosts below, or "~" and a regular expression that matches the whole origin',
      maxLength: 512,
    }),
    { maxItems: 100, description: "Other allowed origins" },
  ),
  missing_origin: oneOf(["allow", "deny"], {
    default: "allow",
    description:
      "Action for requests with neither Sec-Fetch-Site nor Origin: programs, and browsers before 2020",
  }),
  cookie_name: t.String({
    default: "sluice_csrf",
    pattern: "^[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,128}$",
    errorMessage: "must be the name of a cookie",
    description: "With double_submit: name of the cookie that the gateway sets",
  }),
  header_name: headerName({
    default: "X-CSRF-Token",
    description: "With double_submit: header in which pages send its value",
  }),
});

type Config = (typeof schema)["static"];

/** RFC 9110 section 9.2.1. */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

export default definePlugin({
  name: "csrf",
  summary: "Rejects cross-origin requests that carry a user's cookies (CSRF)",
  description: `Applies to unsafe methods, and to WebSocket handshakes, which browsers allow from any page. Services must therefore not change
state in response to GET.

\`origin\` needs no change of the pages: browsers send the origin of a request in \`Sec-Fetch-Site\` and \`Origin\`. \`double_submit\`
also works with browsers that do not: responses to safe requests set a cookie, and scripts send its value back in \`header_name\`.
WebSockets are checked by their origin in both modes.

Behind a proxy that terminates TLS, add it to \`settings.trusted_proxies\`: otherwise the port in \`Origin\` may not match.`,
  group: "access",
  order: 8700,
  phases: ["access", "response"],
  scopes: httpScopes,
  config: schema,
  example: { allowed_origins: ["https://app.example.com"] },
  onError: "closed",
  ignoresPath: true,
  check: ({ allowed_origins: origins }) =>
    origins.flatMap((text, at) => {
      const message =
        text === "*" ? "would allow every page: list the origins" : originProblem(text);
      return message === null ? [] : [{ path: `allowed_origins[${at}]`, message }];
    }),
  create(own, kit) {
    const byOrigin = originJudge(own);
    if (own.mode === "origin")
      return {
        access: (context) => (isExposed(context) ? byOrigin(context) : undefined),
      };
    const tokens = new Tokens(kit.deriveKey("csrf"));
    return {
      access(context) {
        if (!isExposed(context)) return undefined;
        return SAFE.has(context.method) ? byOrigin(context) : judgeToken(context, own, tokens);
      },
      response(context, { headers }) {
        if (!SAFE.has(context.method) || tokens.areValid(cookiesOf(context, own))) return;
        const secure = context.scheme === "https" ? "; Secure" : "";
        const cookie = `${own.cookie_name}=${tokens.create()}; Path=/; SameSite=Lax${secure}`;
        headers.append("Set-Cookie", cookie);
        // A cache would serve the cookie to other clients.
        if (!/\bno-store\b/i.test(headers.get("cache-control") ?? ""))
          headers.set("Cache-Control", "private, no-store");
      },
    };
  },
});

const isWebSocket = (context: RequestContext) =>
  context.header("upgrade")?.toLowerCase() === "websocket";

const isExposed = (context: RequestContext) => !SAFE.has(context.method) || isWebSocket(context);

const refuse = (reason: string, detail: string) => reject(403, reason, { detail });
const crossSite = refuse("csrf.origin", "cross-origin requests are not allowed");
const nowhere = refuse("csrf.origin_missing", "the origin of the request is unknown");
const noToken = refuse("csrf.token_missing", "the CSRF token is missing");
const wrongToken = refuse("csrf.token", "the CSRF token is not valid");

function originJudge(own: Config) {
  const isAllowed = compileOrigins(own.allowed_origins);
  return (context: RequestContext): Rejection | undefined => {
    const site = context.header("sec-fetch-site");
    const origin = context.header("origin");
    if (origin !== null && isAllowed(origin)) return undefined;
    // Pages cannot set Sec-Fetch-Site; those of the same site need an allowed origin.
    if (site !== null) return site === "same-origin" || site === "none" ? undefined : crossSite;
    if (origin === null) return own.missing_origin === "allow" ? undefined : nowhere;
    return isOwn(origin, context) ? undefined : crossSite;
  };
}

/** Whether the request is same-origin. Behind an untrusted proxy the gateway may not know that the client uses https. */
function isOwn(origin: string, { scheme, clientHost }: RequestContext): boolean {
  const from = URL.parse(origin);
  if (from === null || !/^https?:$/.test(from.protocol)) return false;
  if (scheme === "https" && from.protocol !== "https:") return false;
  return from.host === URL.parse(`${from.protocol}//${clientHost}`)?.host;
}

const cookiesOf = (context: RequestContext, own: Config) =>
  cookieValues(context.header("cookie"), own.cookie_name);

function judgeToken(context: RequestContext, own: Config, tokens: Tokens): Rejection | undefined {
  const cookies = cookiesOf(context, own);
  const sent = context.header(own.header_name.toLowerCase());
  const [cookie] = cookies;
  if (cookie === undefined || sent === null || sent === "") return noToken;
  const isSame = isSameHash(hashToken(cookie), hashToken(sent));
  return isSame && tokens.areValid(cookies) ? undefined : wrongToken;
}

/** Values that only this instance can create: another host of the same domain can set the cookie, but not forge a value. */
class Tokens {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  create(): string {
    const value = randomBytes(16).toString("base64url");
    return `${value}.${this.#sign(value)}`;
  }

  /** Another host of the domain may have set a cookie of the same name. */
  areValid(tokens: readonly string[]): boolean {
    const [token = ""] = tokens;
    const [value = "", signature = "", more] = token.split(".");
    if (tokens.length !== 1 || value === "" || more !== undefined) return false;
    return isSameHash(signature, this.#sign(value));
  }

  #sign(value: string): string {
    return createHmac("sha256", this.#key).update(value).digest("base64url");
  }
}
