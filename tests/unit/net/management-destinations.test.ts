// Targets that are the management API itself, under all names that are recognizable without DNS.
import { describe, expect, test } from "bun:test";
import { reachableAt } from "../../../src/cli/own-addresses.ts";
import { destinationProblem } from "../../../src/net/destinations.ts";

const PORT = 9080;
const bound = (address: string) => ({ address, port: PORT });
const reaches = (host: string, port: number | null, management: ReturnType<typeof bound>) =>
  destinationProblem({ host, port }, { permitted: [], management: [management] }) !== null;

describe("a target reaches the management API", () => {
  test.each([
    ["127.0.0.1", "127.0.0.1", "the address itself"],
    ["localhost", "127.0.0.1", "its usual name"],
    ["LocalHost.", "127.0.0.1", "whatever the case, with a dot at the end"],
    ["api.localhost", "127.0.0.1", "RFC 6761: every name below it"],
    ["127.1.2.3", "127.0.0.1", "the whole network is this machine"],
    ["0.0.0.0", "127.0.0.1", "stands for this machine when it is connected to"],
    ["::", "127.0.0.1", "likewise"],
    ["::ffff:127.0.0.1", "127.0.0.1", "an IPv4 address inside IPv6"],
    ["::FFFF:7F00:1", "127.0.0.1", "the same in hexadecimal"],
    ["0:0:0:0:0:ffff:127.0.0.1", "127.0.0.1", "the same written out"],
    ["0:0:0:0:0:0:0:1", "::1", "loopback written out"],
    ["2001:DB8:0::5", "2001:db8::5", "the same address in another form"],
    ["::ffff:10.0.0.5", "10.0.0.5", "the IPv4 address of another interface"],
    ["10.0.0.5", "::ffff:10.0.0.5", "and the other way round"],
    ["127.0.0.1", "0.0.0.0", "a listener on all addresses"],
    ["::1", "::", "likewise"],
    ["localhost", "localhost", "a listener on a name"],
  ])("at %s when it listens on %s: %s", (host, address) => {
    expect(reaches(host, PORT, bound(address))).toBe(true);
  });

  test.each([
    ["10.0.0.6", "10.0.0.5", "another machine"],
    ["localhost", "10.0.0.5", "nothing listens on loopback"],
    ["localhost.example.com", "127.0.0.1", "an ordinary name"],
    ["::2", "::1", "another address"],
  ])("not at %s when it listens on %s: %s", (host, address) => {
    expect(reaches(host, PORT, bound(address))).toBe(false);
  });

  test("not on another port", () => {
    expect(reaches("127.0.0.1", PORT + 1, bound("127.0.0.1"))).toBe(false);
    expect(reaches("127.0.0.1", null, bound("127.0.0.1"))).toBe(false);
  });
});

describe("a listener is reached", () => {
  test("at its own address alone", () => {
    expect(reachableAt({ hostname: "127.0.0.1", port: PORT })).toEqual([bound("127.0.0.1")]);
  });

  test("at every address of the machine when it listens on all of them", () => {
    const places = reachableAt({ hostname: "0.0.0.0", port: PORT }).map(({ address }) => address);
    expect(places).toContain("127.0.0.1");
    expect(places.length).toBeGreaterThan(1);
  });
});

test("the control socket is no target, and other sockets are", () => {
  const rules = { permitted: [], management: [{ address: "unix:/data/control.sock", port: -1 }] };
  const said = (host: string) => destinationProblem({ host, port: null }, rules);
  expect(said("unix:/data/control.sock")).toContain("control socket");
  expect(said("unix:/run/app.sock")).toBeNull();
});
