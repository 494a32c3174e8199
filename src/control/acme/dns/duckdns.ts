// DNS at Duck DNS, which keeps one TXT record for each of its names; knows nothing of what it is for.
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
  help: "Copy the token from duckdns.org. It keeps one TXT record for each name, so a name and its wildcard need a certificate each.",
  config: settings({ token: secret("Token of the account") }),
  example: { token: { $secret: "duckdns" } },
  create({ token }, parts) {
    const ask = createApi({
      service: SERVICE,
      baseUrl: BASE_URL,
      headers: () => ({ accept: "text/plain" }),
      secrets: [token],
      complaint: () => "",
      parts,
    });
    const update = async (domain: string, change: Readonly<Record<string, string>>) => {
      const query = new URLSearchParams({ domains: domain, token, ...change });
      const { text } = await ask({ method: "GET", path: `/update?${query}` });
      if (!text.startsWith("OK"))
        throw new DnsError(
          `${SERVICE} refuses the request: the token or the name ${domain} is wrong`,
        );
    };
    const held = (domain: string) => `${SERVICE} ${domain}`;
    return {
      present: ({ fqdn, value }) => {
        const domain = domainOf(fqdn);
        return parts.inTurn(held(domain), async () => {
          const other = parts.remembered.get(held(domain)) ?? value;
          if (other !== value)
            throw new DnsError(
              `${SERVICE} keeps one TXT record for each name, and that of ${domain} is in use: order certificates for a name and its wildcard one after the other`,
            );
          await update(domain, { txt: value });
          parts.remembered.set(held(domain), value);
        });
      },
      cleanUp: ({ fqdn, value }: TxtRecord) => {
        const domain = domainOf(fqdn);
        return parts.inTurn(held(domain), async () => {
          if ((parts.remembered.get(held(domain)) ?? value) !== value) return;
          await update(domain, { txt: value, clear: "true" });
          parts.remembered.delete(held(domain));
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
    throw new DnsError(`${fqdn} is no name below ${ZONE}`);
  return name.slice(0, -ZONE.length - 1);
}
