// DNS at deSEC: record sets, with a token; knows no challenge.
import { isDocument } from "../../control/body.ts";
import { defineDnsProvider, secret, settings, ttl } from "./definition.ts";
import { longestZone, normalName, relativeName } from "./names.ts";
import { createApi, listIn } from "./request.ts";
import { createValueSetClient, noZone } from "./txt-clients.ts";

const SERVICE = "deSEC";
const BASE_URL = "https://desec.io/api/v1";

export default defineDnsProvider({
  type: "desec",
  title: "deSEC",
  sentTo: BASE_URL,
  help: "Create a token at desec.io that can write the TXT records of the domain.",
  // The minimum of ordinary accounts.
  config: settings({ token: secret("Token"), ttl: ttl(3600, 60) }),
  example: { token: { $secret: "desec" } },
  create(config, parts) {
    const ask = createApi({
      service: SERVICE,
      baseUrl: BASE_URL,
      headers: () => ({ authorization: `Token ${config.token}` }),
      secrets: [config.token],
      parts,
    });
    return createValueSetClient<string, null>(
      {
        async zoneOf(fqdn) {
          const configured = longestZone(parts.zones, fqdn);
          if (configured !== null) return configured;
          const query = new URLSearchParams({ owns_qname: fqdn });
          const { json } = await ask({ method: "GET", path: `/domains/?${query}` });
          const [domain] = listIn(json);
          if (domain === undefined) throw noZone(SERVICE, fqdn);
          return normalName(String(domain["name"]));
        },
        async read(zone, fqdn) {
          // `@` is the zone apex in paths.
          const subname = relativeName(fqdn, zone) || "@";
          const path = `/domains/${zone}/rrsets/${subname}/TXT/`;
          const { json } = await ask({ method: "GET", path, accept: [404] });
          const values = isDocument(json) ? json["records"] : [];
          return { values: Array.isArray(values) ? values.map(String) : [], state: null };
        },
        async write(zone, fqdn, { values }) {
          const subname = relativeName(fqdn, zone);
          // A list creates a missing set; a set without records is deleted.
          await ask({
            method: "PUT",
            path: `/domains/${zone}/rrsets/`,
            json: [{ subname, type: "TXT", ttl: config.ttl, records: values }],
          });
        },
        async zones() {
          const { json } = await ask({ method: "GET", path: "/domains/" });
          return listIn(json).map(({ name }) => normalName(String(name)));
        },
      },
      parts,
    );
  },
});
