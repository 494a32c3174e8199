// DNS at Cloudflare: single records, with an API token; knows no challenge.
import { defineDnsProvider, secret, settings, ttl } from "./definition.ts";
import { quoteTxt } from "./names.ts";
import { allPages } from "./pages.ts";
import { type Ask, type ApiAnswer, createApi, listIn } from "./request.ts";
import { createRecordClient, findZone } from "./txt-clients.ts";

const SERVICE = "Cloudflare";
const BASE_URL = "https://api.cloudflare.com/client/v4";
const PAGE = 50;
/** "An identical record already exists": another client created it first. */
const EXISTS = [81_057, 81_058];

interface Zone {
  readonly id: string;
  readonly name: string;
}

export default defineDnsProvider({
  type: "cloudflare",
  title: "Cloudflare",
  sentTo: BASE_URL,
  help: "Create an API token with the permissions Zone / Zone / Read and Zone / DNS / Edit for the zones.",
  config: settings({ api_token: secret("API token, not the global key"), ttl: ttl(120, 60) }),
  example: { api_token: { $secret: "cloudflare" } },
  create(config, parts) {
    const ask = createApi({
      service: SERVICE,
      baseUrl: BASE_URL,
      headers: () => ({ authorization: `Bearer ${config.api_token}` }),
      secrets: [config.api_token],
      complaint,
      parts,
    });
    return createRecordClient<Zone>({
      zoneOf: (fqdn) =>
        findZone(fqdn, { zones: parts.zones, service: SERVICE }, (name) => findByName(ask, name)),
      async list({ id }, fqdn) {
        const query = new URLSearchParams({ type: "TXT", name: fqdn, per_page: "100" });
        const { json } = await ask({ method: "GET", path: `/zones/${id}/dns_records?${query}` });
        return listIn(json, "result").map((record) => ({
          id: String(record["id"]),
          value: String(record["content"]),
        }));
      },
      async add({ id }, { fqdn, value }) {
        await ask({
          method: "POST",
          path: `/zones/${id}/dns_records`,
          json: { type: "TXT", name: fqdn, content: quoteTxt(value), ttl: config.ttl },
          accept: (answer) => errorsOf(answer).some(({ code }) => EXISTS.includes(Number(code))),
        });
      },
      async remove({ id: zone }, id) {
        await ask({ method: "DELETE", path: `/zones/${zone}/dns_records/${id}`, accept: [404] });
      },
      zones: () => allZones(ask),
    });
  },
});

const errorsOf = ({ json }: ApiAnswer) => listIn(json, "errors");

/** `6003 Invalid request headers`, with its error chain. */
const complaint = (answer: ApiAnswer): string =>
  errorsOf(answer)
    .flatMap((error) => [error, ...listIn(error["error_chain"])])
    .map(({ code, message }) => `${code} ${message}`)
    .join(", ");

async function findByName(ask: Ask, name: string): Promise<Zone | null> {
  const query = new URLSearchParams({ name, per_page: "5" });
  const { json } = await ask({ method: "GET", path: `/zones?${query}` });
  return (
    listIn(json, "result")
      .map(toZone)
      .find((zone) => zone.name === name) ?? null
  );
}

const allZones = (ask: Ask): Promise<readonly string[]> =>
  allPages(PAGE, async (page) => {
    const query = new URLSearchParams({ page: String(page), per_page: String(PAGE) });
    const { json } = await ask({ method: "GET", path: `/zones?${query}` });
    return listIn(json, "result").map((zone) => toZone(zone).name);
  });

const toZone = ({ id, name }: Readonly<Record<string, unknown>>): Zone => ({
  id: String(id),
  name: String(name),
});
