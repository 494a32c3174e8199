// Networks of well-known proxies in front of gateways, by name; the gateway asks nobody for newer ones.

interface KnownProxy {
  /** Day of the list that its operator publishes. */
  readonly asOf: string;
  readonly networks: readonly string[];
}

const knownProxies: Readonly<Record<string, KnownProxy>> = {
  // https://www.cloudflare.com/ips-v4 and /ips-v6
  cloudflare: {
    asOf: "2023-09-28",
    networks: [
      "173.245.48.0/20",
      "103.21.244.0/22",
      "103.22.200.0/22",
      "103.31.4.0/22",
      "141.101.64.0/18",
      "108.162.192.0/18",
      "190.93.240.0/20",
      "188.114.96.0/20",
      "197.234.240.0/22",
      "198.41.128.0/17",
      "162.158.0.0/15",
      "104.16.0.0/13",
      "104.24.0.0/14",
      "172.64.0.0/13",
      "131.0.72.0/22",
      "2400:cb00::/32",
      "2606:4700::/32",
      "2803:f800::/32",
      "2405:b500::/32",
      "2405:8100::/32",
      "2a06:98c0::/29",
      "2c0f:f248::/32",
    ],
  },
};

export const proxyNames = Object.keys(knownProxies);

/** The list with the networks of each name in its place. */
export const withProxyNetworks = (list: readonly string[]): readonly string[] =>
  list.flatMap((text) => (proxyNames.includes(text) ? (knownProxies[text]?.networks ?? []) : text));

/** A check of networks that permits the names too. */
export const orProxyName =
  (check: (text: string) => string | null) =>
  (text: string): string | null => {
    if (proxyNames.includes(text)) return null;
    const problem = check(text);
    return problem === null ? null : `${problem}, or ${proxyNames.join(", ")}`;
  };

/** For help texts: `cloudflare (2023-09-28)`. */
export const proxiesInWords = Object.entries(knownProxies)
  .map(([name, { asOf }]) => `${name} (${asOf})`)
  .join(", ");
