// security-headers: adds security headers for browsers and removes headers that reveal too much.
import { Type as t } from "@sinclair/typebox";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import {
  config,
  flag,
  group,
  headerName,
  headerValue,
  integer,
  listOf,
  nullable,
  oneOf,
} from "../pdk/fields.ts";

const REFERRER_POLICIES = [
  "no-referrer",
  "no-referrer-when-downgrade",
  "origin",
  "origin-when-cross-origin",
  "same-origin",
  "strict-origin",
  "strict-origin-when-cross-origin",
  "unsafe-url",
] as const;

const schema = config({
  hsts: t.Union(
    [
      group(
        {
          max_age: integer(31_536_000, {
            minimum: 0,
            maximum: 4_294_967_295,
            description: "Seconds for which browsers use only HTTPS; 0: removes the policy",
          }),
          include_subdomains: flag(false, "Also for all subdomains"),
          preload: flag(false, "Allow inclusion in the preload lists of browsers"),
        },
        "Strict-Transport-Security",
      ),
      t.Null(),
    ],
    {
      default: {},
      description: "Strict-Transport-Security, over HTTPS only; null: not sent",
    },
  ),
  frame_options: t.Union(
    [oneOf(["SAMEORIGIN", "DENY"], { description: "X-Frame-Options" }), t.Null()],
    {
      default: "SAMEORIGIN",
      description: "X-Frame-Options: which pages may embed this one; null: the service's",
    },
  ),
  nosniff: flag(true, "X-Content-Type-Options: no MIME sniffing"),
  referrer_policy: t.Union(
    [oneOf(REFERRER_POLICIES, { description: "Referrer-Policy" }), t.Null()],
    {
      default: "strict-origin-when-cross-origin",
      description:
        "Referrer-Policy: how much of the URL a page sends to others; null: the service's",
    },
  ),
  csp: nullable(headerValue({ description: "Content-Security-Policy; null: the service's" })),
  permissions_policy: nullable(
    headerValue({ description: "Permissions-Policy; null: the service's" }),
  ),
  coop: nullable(
    oneOf(["unsafe-none", "same-origin-allow-popups", "same-origin", "noopener-allow-popups"], {
      description: "Cross-Origin-Opener-Policy; null: the service's",
    }),
  ),
  corp: nullable(
    oneOf(["same-site", "same-origin", "cross-origin"], {
      description: "Cross-Origin-Resource-Policy; null: the service's",
    }),
  ),
  remove: listOf(headerName({ description: "Name of a header" }), {
    default: ["Server", "X-Powered-By"],
    maxItems: 100,
    description: "Headers to remove from responses",
  }),
});

type Config = (typeof schema)["static"];

/** Headers of every response. */
function fieldsOf(own: Config): readonly (readonly [string, string])[] {
  const all: readonly (readonly [string, string | null])[] = [
    ["X-Frame-Options", own.frame_options],
    ["X-Content-Type-Options", own.nosniff ? "nosniff" : null],
    ["Referrer-Policy", own.referrer_policy],
    ["Content-Security-Policy", own.csp],
    ["Permissions-Policy", own.permissions_policy],
    ["Cross-Origin-Opener-Policy", own.coop],
    ["Cross-Origin-Resource-Policy", own.corp],
  ];
  return all.flatMap(([name, value]) =>
    value === null || value === "" ? [] : [[name, value] as const],
  );
}

function transportSecurity({ hsts }: Config): string | null {
  if (hsts === null) return null;
  const { max_age: maxAge, include_subdomains: all, preload } = hsts;
  return `max-age=${maxAge}${all ? "; includeSubDomains" : ""}${preload ? "; preload" : ""}`;
}

/** Requirements of the preload lists: https://hstspreload.org. */
function check({ hsts }: Config) {
  if (hsts === null || !hsts.preload) return [];
  if (hsts.include_subdomains && hsts.max_age >= 31_536_000) return [];
  const message = "needs include_subdomains and a max_age of at least 31536000";
  return [{ path: "hsts.preload", message }];
}

export default definePlugin({
  name: "security-headers",
  summary: "Adds security headers for browsers and removes headers that reveal too much",
  description: `A header that is set here replaces the service's; null leaves the service's. Error pages and responses of the gateway get the
headers too.

\`Strict-Transport-Security\` is sent over HTTPS only, and is hard to revoke: browsers remember it for \`max_age\` seconds. Begin with
a short time.

A Content-Security-Policy that does not fit the pages breaks them: test it with \`Content-Security-Policy-Report-Only\` first.`,
  group: "content",
  order: 9700,
  phases: ["response"],
  scopes: httpScopes,
  config: schema,
  example: { hsts: { max_age: 86_400 }, csp: "default-src 'self'" },
  onError: "open",
  ignoresPath: true,
  check,
  create(own) {
    const fields = fieldsOf(own);
    const hsts = transportSecurity(own);
    const { remove } = own;
    return {
      response(context, draft) {
        for (const name of remove) draft.removeHeader(name);
        for (const [name, value] of fields) draft.setHeader(name, value);
        if (hsts !== null && context.scheme === "https")
          draft.setHeader("Strict-Transport-Security", hsts);
      },
    };
  },
});
