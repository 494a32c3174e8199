// cors: allows pages of other origins to read responses, and responds to preflight requests.
import { Type as t } from "@sinclair/typebox";
import { reply } from "../pdk/response.ts";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin } from "../pdk/definition.ts";
import { config, flag, headerName, integer, listOf, oneOf, textOrRegex } from "../pdk/fields.ts";
import { addVary, isToken } from "../pdk/http.ts";
import { compileOrigins, originProblem } from "../pdk/origin.ts";

const REFLECT = "reflect";

const schema = config({
  origins: listOf(
    textOrRegex({
      description:
        '`https://app.example.com`, `https://*.example.com` for all hosts below, "*" for all, or "~" and a regular expression that matches the whole origin',
      maxLength: 512,
    }),
    { description: "Allowed origins; none by default" },
  ),
  methods: listOf(t.String({ minLength: 1, maxLength: 64, description: "Method" }), {
    default: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    maxItems: 50,
    description: 'Methods that these pages may use; "*": any',
  }),
  allow_headers: t.Union(
    [
      oneOf([REFLECT], { description: "All headers that the preflight request names" }),
      t.Array(headerName({ description: "Name of a header" }), { maxItems: 200 }),
    ],
    {
      default: REFLECT,
      description:
        'Request headers that these pages may send; "reflect": all that the preflight request names',
    },
  ),
  expose_headers: listOf(headerName({ description: "Name of a header" }), {
    maxItems: 200,
    description: "Response headers that pages may read beside the CORS-safelisted ones",
  }),
  credentials: flag(false, "Allow cookies and other credentials; not with the origin *"),
  max_age: integer(600, {
    minimum: 0,
    maximum: 86_400,
    description: "Seconds for which browsers cache the preflight response",
  }),
  private_network: flag(
    false,
    "Allow public pages to reach this gateway at a private address (Private Network Access)",
  ),
  preflight_continue: flag(
    false,
    "Let the service respond to preflight requests; the gateway only sets the CORS headers",
  ),
});

type Config = (typeof schema)["static"];

/** CORS headers, which replace those of the target. */
const ANSWERS = [
  "Access-Control-Allow-Origin",
  "Access-Control-Allow-Credentials",
  "Access-Control-Expose-Headers",
  "Access-Control-Allow-Methods",
  "Access-Control-Allow-Headers",
  "Access-Control-Max-Age",
  "Access-Control-Allow-Private-Network",
];

function check({ origins, credentials, methods }: Config) {
  const found = origins.flatMap((text, at) => {
    const message = originProblem(text);
    return message === null ? [] : [{ path: `origins[${at}]`, message }];
  });
  if (credentials && origins.includes("*"))
    found.push({
      path: "credentials",
      message: 'cannot be allowed to every origin: name them instead of "*"',
    });
  for (const [at, method] of methods.entries())
    if (!isToken(method)) found.push({ path: `methods[${at}]`, message: "must be a method" });
  return found;
}

export default definePlugin({
  name: "cors",
  summary: "Allows pages of other origins to read responses (CORS)",
  description: `Browsers let a page read responses of another origin only when the responses allow it. Before some requests they send a preflight
request (\`OPTIONS\` with \`Access-Control-Request-Method\`); the gateway responds 204 itself, before authentication.

CORS protects no service from requests: only browsers enforce it. A request of an origin that is not listed gets its response
without the headers, and the browser hides it from the page. The gateway replaces CORS headers of the service.

\`https://*.example.com\` matches every host below example.com, at any depth, on the default port, and not example.com itself: all
pages on these hosts get the access that you allow here.

A regular expression has to match the whole origin: \`~https://[a-z0-9-]+\\.example\\.com\`.`,
  group: "content",
  order: 9800,
  phases: ["pre_auth", "response"],
  scopes: ["global", "service", "route"],
  config: schema,
  example: { origins: ["https://app.example.com"], credentials: true },
  onError: "open",
  ignoresPath: true,
  check,
  create(own) {
    const policy = compile(own);
    return {
      preAuth(context) {
        const origin = context.header("origin");
        if (origin === null || !isPreflight(context) || own.preflight_continue) return undefined;
        const headers = new Headers();
        addVary(headers, policy.preflightVary);
        if (policy.admits(origin)) policy.permit(headers, context, origin);
        else context.note("cors.origin");
        return reply(204, "cors.preflight", { headers });
      },
      response(context, { headers }) {
        for (const name of ANSWERS) headers.delete(name);
        const origin = context.header("origin");
        if (!policy.isForAll) addVary(headers, ["Origin"]);
        if (origin === null) return;
        const isPermission = isPreflight(context);
        if (isPermission) addVary(headers, policy.preflightVary);
        if (!policy.admits(origin)) return context.note("cors.origin");
        if (isPermission) policy.permit(headers, context, origin);
        else policy.show(headers, origin);
      },
    };
  },
});

const isPreflight = (context: RequestContext): boolean =>
  context.method === "OPTIONS" && context.header("access-control-request-method") !== null;

function compile(own: Config) {
  const { origins, credentials, allow_headers: allowHeaders } = own;
  // Without credentials the response is the same for all origins.
  const isForAll = origins.includes("*");
  const isListed = compileOrigins(origins);
  const methods = own.methods.join(", ");
  // With credentials browsers treat "*" as a literal name.
  const namesMethod = credentials && own.methods.includes("*");
  const allowed =
    typeof allowHeaders === "string" || (credentials && allowHeaders.includes("*"))
      ? null
      : allowHeaders.join(", ");
  const exposed = own.expose_headers.join(", ");
  const say = (headers: Headers, origin: string) => {
    headers.set("Access-Control-Allow-Origin", isForAll ? "*" : origin);
    if (credentials) headers.set("Access-Control-Allow-Credentials", "true");
  };
  return {
    isForAll,
    admits: (origin: string) => isForAll || isListed(origin),
    preflightVary: [
      "Origin",
      "Access-Control-Request-Method",
      "Access-Control-Request-Headers",
      ...(own.private_network ? ["Access-Control-Request-Private-Network"] : []),
    ],
    /** Headers of a response to the page. */
    show(headers: Headers, origin: string): void {
      say(headers, origin);
      if (exposed !== "") headers.set("Access-Control-Expose-Headers", exposed);
    },
    /** Headers of a preflight response. */
    permit(headers: Headers, context: RequestContext, origin: string): void {
      say(headers, origin);
      const wanted = context.header("access-control-request-method");
      headers.set(
        "Access-Control-Allow-Methods",
        namesMethod && wanted !== null && isToken(wanted) ? wanted : methods,
      );
      if (exposed !== "") headers.set("Access-Control-Expose-Headers", exposed);
      const fields = allowed ?? wantedFields(context.header("access-control-request-headers"));
      if (fields !== "") headers.set("Access-Control-Allow-Headers", fields);
      headers.set("Access-Control-Max-Age", String(own.max_age));
      if (
        own.private_network &&
        context.header("access-control-request-private-network") === "true"
      )
        headers.set("Access-Control-Allow-Private-Network", "true");
    },
  };
}

/** The requested names; empty when one is invalid. */
function wantedFields(value: string | null): string {
  const names = (value ?? "").split(",").map((each) => each.trim());
  return names.every(isToken) ? names.join(", ") : "";
}
