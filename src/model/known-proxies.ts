// Names of well-known proxies that stand for their networks, with the day of each list; `net/known-proxies.ts` has the networks.

/** The day of each list that comes with the program; `settings` has a field of the same name for the owner's. */
export const proxyListDates = { cloudflare: "2023-09-28" } as const;

export const proxyNames = Object.keys(proxyListDates);

/** For help texts: `cloudflare (2023-09-28)`. */
export const proxiesInWords = Object.entries(proxyListDates)
  .map(([name, date]) => `${name} (${date})`)
  .join(", ");
