// DNS at DigitalOcean: single records, with an API token; knows no challenge.
import { defineDnsProvider, secret, settings, ttl } from "./definition.ts";
import { normalName, relativeName } from "./names.ts";
import { allPages } from "./pages.ts";
import { createApi, listIn } from "./request.ts";
import { createRecordClient, findZone } from "./txt-clients.ts";

const SERVICE = "DigitalOcean";
const BASE_URL = "https://api.digitalocean.com/v2";
const PAGE = 200;

export default defineDnsProvider({
  type: "digitalocean",
  title: "DigitalOcean",
  sentTo: BASE_URL,
  help: "Create a personal access token with the scope domain (read, create, delete).",
  config: settings({ api_token: secret("Personal access token"), ttl: ttl(30, 30) }),
  example: { api_token: { $secret: "digitalocean" } },
  create(config, parts) {
    const ask = createApi({
      service: SERVICE,
      baseUrl: BASE_URL,
      headers: () => ({ authorization: `Bearer ${config.api_token}` }),
      secrets: [config.api_token],
      parts,
    });
    return createRecordClient<string>({
      zoneOf: (fqdn) =>
        findZone(fqdn, { zones: parts.zones, service: SERVICE }, async (name) => {
          const { status } = await ask({ method: "GET", path: `/domains/${name}`, accept: [404] });
          return status === 404 ? null : name;
        }),
      async list(zone, fqdn) {
        const query = new URLSearchParams({ type: "TXT", name: fqdn, per_page: String(PAGE) });
        const { json } = await ask({ method: "GET", path: `/domains/${zone}/records?${query}` });
        return listIn(json, "domain_records").map((record) => ({
          id: String(record["id"]),
          value: String(record["data"]),
        }));
      },
      async add(zone, { fqdn, value }) {
        const name = relativeName(fqdn, zone) || "@";
        await ask({
          method: "POST",
          path: `/domains/${zone}/records`,
          json: { type: "TXT", name, data: value, ttl: config.ttl },
        });
      },
      async remove(zone, id) {
        await ask({ method: "DELETE", path: `/domains/${zone}/records/${id}`, accept: [404] });
      },
      zones: () =>
        allPages(PAGE, async (page) => {
          const query = new URLSearchParams({ page: String(page), per_page: String(PAGE) });
          const { json } = await ask({ method: "GET", path: `/domains?${query}` });
          return listIn(json, "domains").map(({ name }) => normalName(String(name)));
        }),
    });
  },
});
