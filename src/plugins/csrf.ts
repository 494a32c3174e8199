// csrf: refuses requests that pages of other origins make browsers send with the cookies of their user.
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
      "origin: judge by Sec-Fetch-Site and Origin; double_submit: a page has to send the value of a cookie in a header field",
  }),
  allowed_origins: listOf(
    textOrRegex({
      description:
        '`https://app.example.com`, `https://*.example.com` for all hosts below, or "~" and a regular expression for the whole origin',
      maxLength: 512,
    }),
    { maxItems: 100, description: "Other origins whose pages may send such requests" },
  ),
  missing_origin: oneOf(["allow", "deny"], {
    default: "allow",
    description:
      "What becomes of requests with neither Sec-Fetch-Site nor Origin: programs, and browsers from before 2020",
  }),
  cookie_name: t.String({
    default: "sluice_csrf",
    pattern: "^[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,128}$",
    errorMessage: "must be the name of a cookie",
    description: "With double_submit: the cookie, which the gateway sets",
  }),
  header_name: headerName({
    default: "X-CSRF-Token",
    description: "With double_submit: the header field in which pages send its value",
  }),
});

type Config = (typeof schema)["static"];

/** RFC 9110 section 9.2.1. */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

export default definePlugin({
  name: "csrf",
  summary: "Refuses requests that pages of other origins send with the cookies of a user",
  description: `Only unsafe methods are judged, and the opening of a WebSocket, which no other rule of browsers keeps from being opened by
any page. So services must not change anything in answer to GET.

\`origin\` needs nothing of the pages: browsers say by \`Sec-Fetch-Site\` and \`Origin\` where a request comes from.
\`double_submit\` is for pages that have to work with browsers that do not: answers to safe requests set a cookie, and
scripts send its value back in \`header_name\`. WebSockets are judged by their origin in both modes.

Behind a proxy that ends TLS, name it in \`settings.trusted_proxies\`, or the port in \`Origin\` may not fit.`,
  group: "access",
  order: 8700,
  phases: ["access", "response"],
  scopes: httpScopes,
  config: schema,
  example: { allowed_origins: ["https://app.example.com"] },
  onError: "closed",
  check: ({ allowed_origins: origins }) =>
    origins.flatMap((text, at) => {
      const message =
        text === "*" ? "would allow every page: name those that you mean" : originProblem(text);
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
        // Whoever keeps the answer would hand the cookie on.
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
const crossSite = refuse("csrf.origin", "the request comes from a page of another origin");
const nowhere = refuse("csrf.origin_missing", "the request does not say where it comes from");
const noToken = refuse("csrf.token_missing", "the token against forged requests is missing");
const wrongToken = refuse("csrf.token", "the token against forged requests is not valid");

function originJudge(own: Config) {
  const isAllowed = compileOrigins(own.allowed_origins);
  return (context: RequestContext): Rejection | undefined => {
    const site = context.header("sec-fetch-site");
    const origin = context.header("origin");
    if (origin !== null && isAllowed(origin)) return undefined;
    // Browsers let no page write this field; what a page of the same site may do, its origin says.
    if (site !== null) return site === "same-origin" || site === "none" ? undefined : crossSite;
    if (origin === null) return own.missing_origin === "allow" ? undefined : nowhere;
    return isOwn(origin, context) ? undefined : crossSite;
  };
}

/** Whether the origin is where the request went. A proxy that nobody trusts may hide that this is https. */
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

/** Values that only this instance can make: another host of the same domain can set the cookie, but not invent one. */
class Tokens {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  create(): string {
    const value = randomBytes(16).toString("base64url");
    return `${value}.${this.#sign(value)}`;
  }

  /** Of several cookies with the name one may be somebody else's. */
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
