// DNS at Duck DNS, which has one TXT record per name; knows no challenge.
import { defineDnsProvider, secret, settings } from "./definition.ts";
import { DnsError } from "./failure.ts";
import { isWithin, suffixesOf } from "./names.ts";
import type { TxtRecord } from "./provider.ts";
import { createApi } from "./request.ts";

const SERVICE = "Duck DNS";
const BASE_URL = "https://www.duckdns.org";
const ZONE = "duckdns.org";

export default defineDnsProvider({
  type: "duckdns",
  title: "Duck DNS",
  sentTo: BASE_URL,
  help: "Copy the token from duckdns.org. Duck DNS has one TXT record per name, so a name and its wildcard need separate certificates.",
  config: settings({ token: secret("Token of the account") }),
  example: { token: { $secret: "duckdns" } },
  create({ token }, parts) {
    const ask = createApi({
      service: SERVICE,
      baseUrl: BASE_URL,
      headers: () => ({ accept: "text/plain" }),
      secrets: [token],
      parts,
    });
    const update = async (domain: string, change: Readonly<Record<string, string>>) => {
      const query = new URLSearchParams({ domains: domain, token, ...change });
      const { text } = await ask({ method: "GET", path: `/update?${query}` });
      if (!text.startsWith("OK"))
        throw new DnsError(
          `${SERVICE} rejects the request: the token or the name ${domain} is wrong`,
        );
    };
    const cacheKey = (domain: string) => `${SERVICE} ${domain}`;
    return {
      present: ({ fqdn, value }) => {
        const domain = domainOf(fqdn);
        return parts.inTurn(cacheKey(domain), async () => {
          const other = parts.remembered.get(cacheKey(domain)) ?? value;
          if (other !== value)
            throw new DnsError(
              `${SERVICE} has one TXT record per name, and that of ${domain} is in use: request certificates for a name and its wildcard one after the other`,
            );
          await update(domain, { txt: value });
          parts.remembered.set(cacheKey(domain), value);
        });
      },
      cleanUp: ({ fqdn, value }: TxtRecord) => {
        const domain = domainOf(fqdn);
        return parts.inTurn(cacheKey(domain), async () => {
          if ((parts.remembered.get(cacheKey(domain)) ?? value) !== value) return;
          await update(domain, { txt: value, clear: "true" });
          parts.remembered.delete(cacheKey(domain));
        });
      },
      zones: () => Promise.resolve([ZONE]),
    };
  },
});

/** `_acme-challenge.www.home.duckdns.org` -> `home`: names below one share its record. */
function domainOf(fqdn: string): string {
  const name = suffixesOf(fqdn, 3).at(-1);
  if (!isWithin(fqdn, ZONE) || name === undefined)
    throw new DnsError(`${fqdn} is not a name below ${ZONE}`);
  return name.slice(0, -ZONE.length - 1);
}
