// Names of well-known proxies in lists of networks.
import { expect, test } from "bun:test";
import { formatNeed } from "../../src/fleet/entry-format.ts";
import { proxyNames } from "../../src/model/known-proxies.ts";
import { cidrProblem, compileCidrs } from "../../src/net/cidr.ts";
import {
  proxyNetworkProblem,
  proxyNetworks,
  withProxyNetworks,
} from "../../src/net/known-proxies.ts";

const none = { cloudflare: { networks: [] } };

test("a name stands for its networks, all of which are valid", () => {
  expect(Object.keys(proxyNetworks)).toEqual(proxyNames);
  for (const name of proxyNames) {
    const networks = withProxyNetworks([name], none);
    expect(networks.length).toBeGreaterThan(0);
    expect(networks.filter((network) => cidrProblem(network) !== null)).toEqual([]);
  }
  const contains = compileCidrs(withProxyNetworks(["192.0.2.0/24", "cloudflare"], none));
  expect(["192.0.2.7", "104.16.0.1", "2606:4700::6810:1", "8.8.8.8"].map(contains)).toEqual([
    true,
    true,
    true,
    false,
  ]);
});

test("an owner's list replaces the one that comes with the program, an empty one does not", () => {
  const own = { cloudflare: { networks: ["198.51.100.0/24"] } };
  expect(withProxyNetworks(["192.0.2.0/24", "cloudflare"], own)).toEqual([
    "192.0.2.0/24",
    "198.51.100.0/24",
  ]);
  expect(withProxyNetworks(["cloudflare"], none)).toEqual(proxyNetworks.cloudflare);
  const listed = ["192.0.2.0/24"];
  expect(withProxyNetworks(listed, own)).toBe(listed);
});

test("only known names are permitted, and the error lists them", () => {
  expect(proxyNetworkProblem("cloudflare")).toBeNull();
  expect(proxyNetworkProblem("constructor")).toEndWith("2001:db8::/32, or cloudflare");
});

test("nodes that do not know the names are named in place of reading them as networks", () => {
  const listener = { id: "a", trusted_proxies: ["10.0.0.0/8", "cloudflare"] };
  const change = { listeners: { upserts: [listener], deletes: [] } } as never;
  expect(formatNeed({ change, facts: [] }).because).toContain("listeners.trusted_proxies");
  listener.trusted_proxies.pop();
  expect(formatNeed({ change, facts: [] }).because).not.toContain("listeners.trusted_proxies");
});
