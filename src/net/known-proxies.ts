// Networks of well-known proxies in front of gateways, by name. They come with the program, which never requests newer ones.
import { cidrProblem } from "./cidr.ts";

/** `model/known-proxies.ts` has the day of each list. */
export const proxyNetworks: Readonly<Record<string, readonly string[]>> = {
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

/** The list with the networks of each name in its place. */
export const withProxyNetworks = (list: readonly string[]): readonly string[] =>
  list.flatMap((text) => (Object.hasOwn(proxyNetworks, text) ? (proxyNetworks[text] ?? []) : text));

/** The problem of what is neither a network nor a name. */
export function proxyNetworkProblem(text: string): string | null {
  if (Object.hasOwn(proxyNetworks, text)) return null;
  const problem = cidrProblem(text);
  return problem === null ? null : `${problem}, or ${Object.keys(proxyNetworks).join(", ")}`;
}
