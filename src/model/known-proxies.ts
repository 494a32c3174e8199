// Names of well-known proxies that stand for their networks, with the day of each list; `net/known-proxies.ts` has the networks.

const proxyListDates: Readonly<Record<string, string>> = { cloudflare: "2023-09-28" };

export const proxyNames = Object.keys(proxyListDates);

/** For help texts: `cloudflare (2023-09-28)`. */
export const proxiesInWords = Object.entries(proxyListDates)
  .map(([name, date]) => `${name} (${date})`)
  .join(", ");
