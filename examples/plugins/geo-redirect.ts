// geo-redirect: sends visitors of a country to the site made for it, once, and lets them stay where they want.
import {
  config,
  definePlugin,
  flag,
  headerValue,
  httpScopes,
  listOf,
  reply,
  t,
} from "@sluice/plugin";

const site = t.Object(
  {
    countries: t.Array(
      t.String({ pattern: "^[A-Z]{2}$", errorMessage: "must be two capital letters, such as DE" }),
      {
        minItems: 1,
        maxItems: 250,
        description: "ISO 3166-1 codes of countries",
      },
    ),
    to: t.String({
      pattern: "^https?://[^/?#]+$",
      maxLength: 512,
      errorMessage: "must be a scheme and a host, such as https://de.example.com",
      description: "Where their visitors go; path and query stay",
    }),
  },
  { additionalProperties: false, description: "A site" },
);

export default definePlugin({
  name: "geo-redirect",
  summary: "Redirects visitors to the site of their country",
  description: `The country of the client's address comes from the gateway's GeoIP database. A visitor whose country is unknown, or who
has the cookie \`cookie\`, stays: set it on the page where visitors choose another site.`,
  group: "traffic",
  order: 8450,
  phases: ["pre_auth"],
  scopes: httpScopes,
  config: config({
    sites: listOf(site, {
      description: "Sites by country; the first that lists a country is used",
      maxItems: 100,
    }),
    cookie: headerValue({
      default: "stay",
      maxLength: 64,
      description: "Name of the cookie of visitors who stay",
    }),
    permanent: flag(false, "Respond 308 instead of 307, which browsers remember"),
  }),
  example: { sites: [{ countries: ["DE", "AT"], to: "https://de.example.com" }] },
  onError: "open",
  create(own) {
    const byCountry = new Map<string, string>();
    for (const { countries, to } of own.sites)
      for (const country of countries) if (!byCountry.has(country)) byCountry.set(country, to);
    const status = own.permanent ? 308 : 307;
    return {
      preAuth(context) {
        if (context.cookie(own.cookie) !== null) return undefined;
        const to = byCountry.get(context.country() ?? "");
        if (to === undefined || to === `${context.scheme}://${context.host}`) return undefined;
        return reply(status, "geo-redirect.country", {
          headers: { Location: `${to}${context.target}`, "Cache-Control": "private, no-store" },
        });
      },
    };
  },
});
