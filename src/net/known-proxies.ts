// Networks of well-known proxies in front of gateways, by name. They come with the program, which never requests newer ones.
import { cidrProblem } from "./cidr.ts";

/** `model/known-proxies.ts` has the day of each list. */
export const proxyNetworks = {
  // https://www.cloudflare.com/ips-v4 and /ips-v6
  cloudflare: [
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
};

type ProxyName = keyof typeof proxyNetworks;

/** The owner's lists in the place of those that come with the program; an empty one replaces nothing. */
export type ProxyLists = Readonly<Record<ProxyName, { readonly networks: readonly string[] }>>;

/** The list with the networks of each name in its place; without names, the same list. */
export function withProxyNetworks(list: readonly string[], own: ProxyLists): readonly string[] {
  if (!list.some(isProxyName)) return list;
  return list.flatMap((text) => {
    if (!isProxyName(text)) return text;
    const { networks } = own[text];
    return networks.length > 0 ? networks : proxyNetworks[text];
  });
}

const isProxyName = (text: string): text is ProxyName => Object.hasOwn(proxyNetworks, text);

/** The problem of what is neither a network nor a name. */
export function proxyNetworkProblem(text: string): string | null {
  if (isProxyName(text)) return null;
  const problem = cidrProblem(text);
  return problem === null ? null : `${problem}, or ${Object.keys(proxyNetworks).join(", ")}`;
}
