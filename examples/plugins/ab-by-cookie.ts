// ab-by-cookie: assigns each visitor to a variant for as long as a cookie lives, and sends variant B to another service.
import {
  config,
  definePlugin,
  headerValue,
  httpScopes,
  integer,
  serviceReference,
  t,
} from "@sluice/plugin";

export default definePlugin({
  name: "ab-by-cookie",
  summary: "Splits visitors into two variants that a cookie remembers",
  description: `Visitors without the cookie get a variant by chance. The target reads it from the header \`X-Variant\`, which clients
cannot set.`,
  group: "traffic",
  order: 3050,
  phases: ["request", "response"],
  scopes: httpScopes,
  config: config({
    cookie: headerValue({ default: "variant", maxLength: 64, description: "Name of the cookie" }),
    share_b: t.Number({
      default: 50,
      minimum: 0,
      maximum: 100,
      description: "Percentage of new visitors who get B",
    }),
    service_b: t.Optional(
      serviceReference({ description: "Service of variant B; default: that of the route" }),
    ),
    days: integer(30, { minimum: 1, maximum: 400, description: "Days that the cookie lives" }),
  }),
  example: { share_b: 10 },
  onError: "open",
  create(own) {
    // The handlers of this instance find the variant of a request under this key.
    const assigned = {};
    return {
      request(context) {
        const known = context.cookie(own.cookie);
        const isKnown = known === "a" || known === "b";
        const variant = isKnown ? known : Math.random() * 100 < own.share_b ? "b" : "a";
        if (!isKnown) context.memory.set(assigned, variant);
        context.upstream.setHeader("X-Variant", variant);
        if (variant === "b" && own.service_b !== undefined)
          context.upstream.setService(own.service_b);
        context.note(`ab.${variant}`);
        return undefined;
      },
      response(context, response) {
        const variant = context.memory.get(assigned);
        if (typeof variant !== "string") return;
        const secure = context.scheme === "https" ? "; Secure" : "";
        response.headers.append(
          "Set-Cookie",
          `${own.cookie}=${variant}; Path=/; Max-Age=${own.days * 86_400}; SameSite=Lax; HttpOnly${secure}`,
        );
      },
    };
  },
});
