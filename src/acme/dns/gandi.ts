// DNS at Gandi (LiveDNS): record sets, with a personal access token; knows no challenge.
import { isDocument } from "../../control/body.ts";
import { defineDnsProvider, secret, settings, ttl } from "./definition.ts";
import { errorTextOf, quote } from "../../net/quote.ts";
import { DnsError } from "./failure.ts";
import { normalName, relativeName } from "./names.ts";
import { allPages } from "./pages.ts";
import { createApi, listIn } from "./request.ts";
import { createValueSetClient, findZone } from "./txt-clients.ts";

const SERVICE = "Gandi";
const BASE_URL = "https://api.gandi.net/v5/livedns";
const PAGE = 100;

export default defineDnsProvider({
  type: "gandi",
  title: "Gandi",
  sentTo: BASE_URL,
  help: "Create a personal access token with the permission to manage the technical configuration of the domains.",
  config: settings({ access_token: secret("Personal access token"), ttl: ttl(300, 300) }),
  example: { access_token: { $secret: "gandi" } },
  create(config, parts) {
    const ask = createApi({
      service: SERVICE,
      baseUrl: BASE_URL,
      headers: () => ({ authorization: `Bearer ${config.access_token}` }),
      secrets: [config.access_token],
      parts,
    });
    const pathOf = (zone: string, fqdn: string) =>
      `/domains/${zone}/records/${relativeName(fqdn, zone) || "@"}/TXT`;
    return createValueSetClient<string, null>(
      {
        async zoneOf(fqdn) {
          let said = "";
          const zones = { zones: parts.zones, service: SERVICE };
          return await findZone(fqdn, zones, async (name) => {
            // For a domain of another account the status is 403, and for a token without the permission.
            const call = { method: "GET", path: `/domains/${name}`, accept: [403, 404] } as const;
            const { status, text } = await ask(call);
            if (status === 403) said ||= quote(errorTextOf(text), [config.access_token]);
            return status === 200 ? name : null;
          }).catch((error: unknown) => {
            if (said === "" || !(error instanceof DnsError) || error.status !== null) throw error;
            throw new DnsError(`${error.message} (status 403: ${said})`);
          });
        },
        async read(zone, fqdn) {
          const { json } = await ask({ method: "GET", path: pathOf(zone, fqdn), accept: [404] });
          const values = isDocument(json) ? json["rrset_values"] : [];
          return { values: Array.isArray(values) ? values.map(String) : [], state: null };
        },
        async write(zone, fqdn, { values }) {
          const path = pathOf(zone, fqdn);
          if (values.length === 0) await ask({ method: "DELETE", path, accept: [404] });
          else
            await ask({
              method: "PUT",
              path,
              json: { rrset_values: values, rrset_ttl: config.ttl },
            });
        },
        zones: () =>
          allPages(PAGE, async (page) => {
            const query = new URLSearchParams({ page: String(page), per_page: String(PAGE) });
            const { json } = await ask({ method: "GET", path: `/domains?${query}` });
            return listIn(json).map(({ fqdn }) => normalName(String(fqdn)));
          }),
      },
      parts,
    );
  },
});
