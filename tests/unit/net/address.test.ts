// IP addresses as text, networks, and which address a request comes from.
import { expect, test } from "bun:test";
import ipaddr from "ipaddr.js";
import { networkOf, normalizeAddress } from "../../../src/net/address.ts";
import { cidrProblem, compileCidrs, coversAllAddresses } from "../../../src/net/cidr.ts";
import { clientAddress } from "../../../src/net/client-address.ts";
import { Random } from "../router/sample-routes.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  [" 192.0.2.1 ", "192.0.2.1"],
  ["192.0.2.1:4711", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:c000:0201", "192.0.2.1"],
  ["[::ffff:192.0.2.1]:80", "192.0.2.1"],
  ["2001:DB8:0:0::1", "2001:db8::1"],
  ["[2001:db8::1]", "2001:db8::1"],
  ["[2001:db8::1]:443", "2001:db8::1"],
  ["fe80::1%eth0", "fe80::1"],
  ["::", "::"],
  ["1::", "1::"],
  ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"],
  ["::1.2.3.4", "::102:304"],
  ["64:ff9b::192.0.2.1", "64:ff9b::c000:201"],
])("%j is the address %s", (text, address) => {
  expect(normalizeAddress(text)).toBe(address);
});

test.each([
  "",
  "unknown",
  "_hidden",
  "1.2.3",
  "1.2.3.4.5",
  "256.1.1.1",
  "01.2.3.4",
  "1.2.3.4:",
  "1.2.3.4:99999",
  "1.2.3.4:x",
  "0x7f.0.0.1",
  "1..2.3",
  ".1.2.3",
  "1.2.3.",
  "[1.2.3.4]",
  "[::1",
  "[::1]x",
  "[::1]:x",
  ":::",
  "1::2::3",
  "1:2:3:4:5:6:7",
  "1:2:3:4:5:6:7:8:9",
  "1:2:3:4:5:6:7::8:9",
  "12345::",
  "g::",
  ":1",
  "1:",
  "::1%",
  "1:2:3:4:5:6:7:1.2.3.4",
  "::1.2.3",
  "a.test",
])("%j is not an address", (text) => {
  expect(normalizeAddress(text)).toBeNull();
});

test("IPv6 is read as the library reads it", () => {
  const random = new Random(3);
  for (let i = 0; i < 2000; i++) {
    const groups = Array.from({ length: 8 }, () => (random.chance(50) ? 0 : random.below(65_536)));
    const long = groups.map((group) => group.toString(16)).join(":");
    const short = ipaddr.IPv6.parse(long).toString();
    expect(normalizeAddress(long)).toBe(normalizeAddress(short));
    expect(normalizeAddress(short)).toBe(ipaddr.process(long).toString());
  }
});

test.each([
  "10.0.0.0/8",
  "10.1.2.3",
  "0.0.0.0/0",
  "::/0",
  "2001:db8::/32",
  "::1",
  "10.1.2.3/8",
  "::ffff:10.0.0.0/104",
])("%s is a network", (text) => {
  expect(cidrProblem(text)).toBeNull();
});

test.each([
  "",
  "10.0.0.0/33",
  "10.0.0/8",
  "::/129",
  "10.0.0.0/",
  "10.0.0.0/08",
  "10.0.0.0/-1",
  "a.test",
  "10.0.0.0/8/8",
  "fe80::1%eth0/64",
  "10.0.0.0 /8",
])("%j is not a network", (text) => {
  expect(cidrProblem(text)).toContain("must be an IP address or a network");
});

test.each([
  [[], "10.0.0.1", false, "the empty list holds nothing"],
  [["10.0.0.0/8"], "10.255.255.255", true, "the last address"],
  [["10.0.0.0/8"], "11.0.0.0", false, "the one after"],
  [["10.0.0.0/8"], "9.255.255.255", false, "the one before"],
  [["10.1.2.3/8"], "10.9.9.9", true, "host bits do not count"],
  [["0.0.0.0/0"], "255.255.255.255", true, "all of IPv4"],
  [["0.0.0.0/0"], "::1", false, "and nothing of IPv6"],
  [["::/0"], "10.0.0.1", false, "all of IPv6 and nothing of IPv4"],
  [["::/0"], "::ffff:10.0.0.1", false, "a mapped address is IPv4"],
  [["10.0.0.0/8"], "::ffff:10.0.0.1", true, "also for an IPv4 network"],
  [["::ffff:10.0.0.0/104"], "10.0.0.1", true, "a mapped network is IPv4"],
  [["10.0.0.0/8", "10.1.0.0/16", "10.0.0.1"], "10.200.0.1", true, "one network inside another"],
  [["2001:db8::/33"], "2001:db8:7fff::1", true, "a length inside a group"],
  [["2001:db8::/33"], "2001:db8:8000::1", false, "the other half"],
  [["fe80::/10"], "fe80::1%eth0", true, "a zone does not count"],
  [["0.0.0.0/0", "::/0"], "unknown", false, "what is no address is nowhere"],
])("%p holds %s: %p (%s)", (list, address, holds) => {
  expect(compileCidrs(list)(address)).toBe(holds);
});

test("a list of networks matches exactly what one of them matches", () => {
  const random = new Random(11);
  const part = () => random.pick([0, 1, 10, 127, 128, 192, 255]);
  const v4 = () => `${part()}.${part()}.${part()}.${part()}`;
  const v6 = () => `${part()}:${part()}::${part()}`;
  for (let i = 0; i < 200; i++) {
    const list = Array.from({ length: 1 + random.below(20) }, () =>
      random.chance(50) ? `${v4()}/${random.below(33)}` : `${v6()}/${random.below(129)}`,
    );
    const holds = compileCidrs(list);
    for (let j = 0; j < 20; j++) {
      const address = ipaddr.parse(random.chance(50) ? v4() : v6());
      const wanted = list.some((cidr) => {
        const network = ipaddr.parseCIDR(cidr);
        return network[0].kind() === address.kind() && address.match(network);
      });
      expect([list, address.toString(), holds(address.toString())]).toEqual([
        list,
        address.toString(),
        wanted,
      ]);
    }
  }
});

test.each([
  { list: ["0.0.0.0/0"], all: true, why: "all of IPv4" },
  { list: ["::/0"], all: true, why: "all of IPv6" },
  { list: ["2000::/3"], all: true, why: "all of IPv6 that is given out" },
  { list: ["::ffff:0.0.0.0/96"], all: true, why: "all of IPv4, written as IPv6" },
  { list: ["128.0.0.0/1", "0.0.0.0/1"], all: true, why: "two halves" },
  { list: ["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/2"], all: true, why: "a half and two quarters" },
  { list: ["3000::/4", "2000::/4"], all: true, why: "two halves of IPv6" },
  { list: ["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"], all: false, why: "the end is missing" },
  { list: ["1.0.0.0/8", "2.0.0.0/7", "4.0.0.0/6"], all: false, why: "the beginning is missing" },
  { list: ["0.0.0.0/2", "128.0.0.0/1"], all: false, why: "a gap" },
  { list: ["fc00::/7", "10.0.0.0/8"], all: false, why: "private networks" },
  { list: ["4000::/2", "8000::/1"], all: false, why: "IPv6 that is not given out" },
  { list: [], all: false, why: "nothing" },
])("$list covers all addresses: $all, $why", ({ list, all }) => {
  expect(coversAllAddresses(list)).toBe(all);
});

const trusted = compileCidrs(["10.0.0.0/8", "::1"]);
test.each([
  ["203.0.113.9", "1.1.1.1", "203.0.113.9", "an untrusted peer is the client whatever it claims"],
  ["10.0.0.1", null, "10.0.0.1", "a trusted peer that says nothing"],
  ["10.0.0.1", "", "10.0.0.1", "an empty list"],
  ["10.0.0.1", "203.0.113.9", "203.0.113.9", "one hop"],
  ["10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9", "what the client sent itself does not count"],
  ["10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9", "two trusted hops"],
  ["10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3", "all hops are trusted: the leftmost"],
  [
    "10.0.0.1",
    "1.1.1.1, unknown, 10.0.0.2",
    "10.0.0.2",
    "nothing left of a non-address was vouched for",
  ],
  ["10.0.0.1", "1.1.1.1, , 10.0.0.2", "10.0.0.2", "an empty entry is no address"],
  ["10.0.0.1", "203.0.113.9:55555", "203.0.113.9", "with a port"],
  ["::1", '"[2001:db8::9]:1"', "::1", "quotes are not of this field"],
  ["::1", "[2001:db8::9]:1", "2001:db8::9", "IPv6 with a port"],
  ["10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9", "mapped IPv4"],
  ["10.0.0.1", "1.1.1.1,", "10.0.0.1", "a trailing comma"],
])("from %s with X-Forwarded-For %p the client is %s: %s", (peer, list, client) => {
  expect(clientAddress(peer, list, trusted)).toBe(client);
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["::1", "::/64"],
])("what the addresses of one client have in common: %s is of %s", (address, network) => {
  expect(networkOf(address, 64)).toBe(network);
});

test("a network of IPv6 may end within a group", () => {
  expect(networkOf("2001:db8:ffff::1", 36)).toBe("2001:db8:f000::/36");
  expect(networkOf("2001:db8:ffff::1", 128)).toBe("2001:db8:ffff::1/128");
});
