// Tables of networks: one key for each network, and lookups that agree with a search through all entries.
import { describe, expect, test } from "bun:test";
import { compileCidrs } from "../../../src/net/cidr.ts";
import {
  compileNetworks,
  NEVER,
  type NetworkEntry,
  networkKey,
  NetworkLookup,
} from "../../../src/net/network-table.ts";
import { finish } from "../../../src/pace.ts";

const entry = (network: string, value = 0, until = NEVER): NetworkEntry => ({
  key: networkKey(network) as string,
  value,
  until,
});
const lookup = (...entries: NetworkEntry[]) => new NetworkLookup(finish(compileNetworks(entries)));

describe("a network has one key", () => {
  test.each([
    ["10.1.2.3/8", "10.0.0.0/8"],
    ["192.0.2.7", "192.0.2.7/32"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.0/120", "192.0.2.0/24"],
    ["2001:DB8:0::1/32", "2001:db8::/32"],
    ["2001:db8::1/128", "2001:db8:0:0:0:0:0:1"],
    ["1.2.3.4/0", "0.0.0.0/0"],
    ["ffff::/0", "::/0"],
  ])("%p and %p", (one, other) => {
    expect(networkKey(one)).toBe(networkKey(other) as string);
    expect(networkKey(one)).not.toBeNull();
  });
  test.each([
    ...["", "/", "1.2.3", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/-1", "1.2.3.4/08", "01.2.3.4"],
    ...["::/129", "::1/", "[::1]", "1.2.3.4/24/24", "fe80::1%eth0", "x", "1.2.3.4 ", ":::"],
  ])("%p has none", (text) => {
    expect(networkKey(text)).toBeNull();
  });
});

test("the empty table has no address, and a text that is no address is in no network", () => {
  expect(lookup().find("1.2.3.4", Date.now)).toBe(-1);
  const all = lookup(entry("0.0.0.0/0"), entry("::/0"));
  for (const text of ["", "x", "1.2.3", "::1::", "1.2.3.4:80"])
    expect(all.find(text, Date.now)).toBe(-1);
  expect(all.find("255.255.255.255", Date.now)).toBe(0);
  expect(all.find("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Date.now)).toBe(0);
});

test("::/0 has no IPv4 address, in whatever notation", () => {
  const ipv6 = lookup(entry("::/0"));
  expect(ipv6.find("1.2.3.4", Date.now)).toBe(-1);
  expect(ipv6.find("::ffff:1.2.3.4", Date.now)).toBe(-1);
  expect(ipv6.find("fe80::1%eth0", Date.now)).toBe(0);
});

test("the smallest network that has not ended counts", () => {
  let now = 0;
  const table = lookup(
    entry("10.0.0.0/8", 1),
    entry("10.1.0.0/16", 2, 100),
    entry("10.1.2.3", 3, 50),
    entry("10.1.2.3/32", 4, 40),
  );
  const find = (address: string) => table.find(address, () => now * 1000);
  expect([find("10.1.2.3"), find("10.1.2.4"), find("10.2.0.0"), find("11.0.0.0")]).toEqual([
    3, 2, 1, -1,
  ]);
  now = 49.999;
  expect(find("10.1.2.3")).toBe(3);
  now = 50;
  expect(find("10.1.2.3")).toBe(2);
  now = 100;
  expect(find("10.1.2.3")).toBe(1);
});

test("agrees with ip-restriction's lists about random networks and addresses", () => {
  let state = 7;
  const random = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
  // Few values, so that networks overlap and addresses hit their borders.
  const octet = () => [0, 1, 127, 128, 254, 255][random(6)] ?? 0;
  const ipv4 = () => `${octet()}.${octet()}.${octet()}.${octet()}`;
  const group = () => ["0", "1", "7fff", "8000", "ffff"][random(5)] ?? "0";
  const ipv6 = () => Array.from({ length: 8 }, group).join(":");
  const address = () => (random(2) === 0 ? ipv4() : ipv6());
  const network = () => (random(2) === 0 ? `${ipv4()}/${random(33)}` : `${ipv6()}/${random(129)}`);
  for (let round = 0; round < 200; round++) {
    const networks = Array.from({ length: 1 + random(12) }, network).filter(
      (text) => !/\/[0-3]$/.test(text),
    );
    const isListed = compileCidrs(networks);
    const table = lookup(...networks.map((text) => entry(text, 9)));
    for (let at = 0; at < 50; at++) {
      const text = address();
      expect([text, table.find(text, Date.now) === 9]).toEqual([text, isListed(text)]);
    }
  }
});
