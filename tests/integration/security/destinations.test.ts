// An editor points everything that opens connections at metadata addresses and at the management API: each is a 400 that names the field. Nothing is connected to.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const M = "169.254.169.254";
const NAT64 = "[64:ff9b::a9fe:a9fe]";

let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  await gateway.ok("POST", "/api/v1/services", { name: "base" });
});
afterAll(() => gateway.stop());

const plugin = (name: string, config: object) => ["plugins", { name, config }] as const;
const alert = (type: string, config: object) =>
  ["alerts", { name: "a", type, events: ["target_down"], config }] as const;
const dns = (type: string, config: object) =>
  ["dns-providers", { name: "d", type, config }] as const;
const target = (host: string) => ["services/base/targets", { host, port: 80 }] as const;

describe("refused, whoever asks:", () => {
  test.each([
    ["forward-auth", plugin("forward-auth", { url: `http://${M}/` }), "config.url"],
    [
      "forward-auth, hexadecimal",
      plugin("forward-auth", { url: "http://0xa9fea9fe/" }),
      "config.url",
    ],
    ["mirror", plugin("mirror", { url: `http://${NAT64}/` }), "config.url"],
    ["tracing", plugin("otel-tracing", { endpoint: `http://${M}/` }), "config.endpoint"],
    [
      "a block list",
      plugin("blocklist", { lists: [{ name: "l", url: `http://${M}/l` }] }),
      "config.lists[0].url",
    ],
    [
      "CrowdSec",
      plugin("crowdsec", { url: "http://100.100.100.200/", api_key: "k" }),
      "config.url",
    ],
    ["keys of tokens", plugin("jwt", { jwks_url: "http://168.63.129.16/" }), "config.jwks_url"],
    [
      "an access log over HTTP",
      plugin("access-log", { sinks: [{ http: { url: `http://${M}/` } }] }),
      "config.sinks[0].http.url",
    ],
    [
      "an access log over TCP",
      plugin("access-log", { sinks: [{ tcp: { address: `${M}:514` } }] }),
      "config.sinks[0].tcp.address",
    ],
    [
      "an access log over UDP",
      plugin("access-log", { sinks: [{ udp: { address: `${NAT64}:514` } }] }),
      "config.sinks[0].udp.address",
    ],
    [
      "an access log in syslog",
      plugin("access-log", { sinks: [{ syslog: { address: "192.0.0.192:514" } }] }),
      "config.sinks[0].syslog.address",
    ],
    [
      "a directory",
      plugin("ldap-auth", { url: `ldap://${M}`, bind_dn: "uid=${username},dc=a" }),
      "config.url",
    ],
    ["an alert", alert("webhook", { url: `https://${M}/` }), "config.url"],
    [
      "an alert by mail",
      alert("smtp", { host: M, port: 25, from: "a@b.c", to: ["a@b.c"] }),
      "config.host",
    ],
    [
      "a DNS provider",
      dns("rfc2136", { server: `${M}:53`, tsig_key_name: "k", tsig_secret: "aGVsbG8=" }),
      "config.server",
    ],
    ["a target", target(M), "host"],
    ["a target by NAT64", target("64:ff9b::a9fe:a9fe"), "host"],
    ["a target by 6to4", target("2002:a9fe:a9fe::"), "host"],
    ["a target, IPv4-compatible", target("::169.254.169.254"), "host"],
    ["a target at Alibaba", target("100.100.100.200"), "host"],
    ["a target at Oracle", target("192.0.0.192"), "host"],
    ["a target at Azure", target("168.63.129.16"), "host"],
    ["a target at AWS over IPv6", target("fd00:ec2::254"), "host"],
  ])("%s", async (_, [collection, body], field) => {
    const response = await gateway.api("POST", `/api/v1/${collection}?dry_run=1`, body);
    const { error } = (await response.json()) as { error: string };
    expect([response.status, error]).toEqual([
      400,
      expect.stringContaining(`${field}: is a link-local`),
    ]);
    expect(error).toContain("settings.permitted_destinations");
  });
});

test.each([
  ["forward-auth on this machine", plugin("forward-auth", { url: "http://127.0.0.1:9091/" })],
  ["CrowdSec on this machine", plugin("crowdsec", { url: "http://127.0.0.1:8080/", api_key: "k" })],
])("%s is allowed", async (_, [collection, body]) => {
  const { status } = await gateway.api("POST", `/api/v1/${collection}?dry_run=1`, body);
  expect(status).toBeLessThan(300);
});

test.each([
  ["forward-auth", (url: string) => plugin("forward-auth", { url })],
  ["mirror", (url: string) => plugin("mirror", { url })],
  ["an alert", (url: string) => alert("webhook", { url })],
])("%s cannot call the management API of this gateway", async (_, of) => {
  const [collection, body] = of(`http://127.0.0.1:${new URL(gateway.admin).port}/`);
  const response = await gateway.api("POST", `/api/v1/${collection}?dry_run=1`, body);
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining("config.url: is the management API itself"),
  ]);
});

test("what an admin permits is allowed, and nothing else", async () => {
  const permitted_destinations = ["169.254.10.0/24"];
  await gateway.ok("PATCH", "/api/v1/settings", { permitted_destinations });
  const statusOf = async (host: string) =>
    (await gateway.api("POST", "/api/v1/services/base/targets?dry_run=1", { host, port: 80 }))
      .status;
  expect(await statusOf("169.254.10.7")).toBeLessThan(300);
  expect(await statusOf("169.254.11.7")).toBe(400);
  expect(await statusOf(M)).toBe(400);
});

describe("a destination that stored objects use stays permitted:", () => {
  const at = "169.254.10.7";
  const permit = (permitted_destinations: string[]) =>
    gateway.api("PATCH", "/api/v1/settings", { permitted_destinations });

  test.each([
    ["a target", target(at), "target"],
    ["a plugin", plugin("forward-auth", { url: `http://${at}/` }), 'plugin "'],
    ["a block list", plugin("blocklist", { lists: [{ name: "l", url: `http://${at}/l` }] }), "plu"],
    ["a server", plugin("access-log", { sinks: [{ udp: { address: `${at}:514` } }] }), 'plugin "'],
    ["an alert", alert("webhook", { url: `https://${at}/` }), 'alert "a"'],
    [
      "an alert by mail",
      alert("smtp", { host: at, port: 25, from: "a@b.c", to: ["a@b.c"] }),
      'alert "a"',
    ],
    [
      "a DNS provider",
      dns("rfc2136", { server: `${at}:53`, tsig_key_name: "k", tsig_secret: "aGVsbG8=" }),
      'DNS provider "d"',
    ],
  ])("%s", async (_, [collection, body], named) => {
    expect((await permit(["169.254.10.0/24"])).status).toBe(200);
    const { id } = await gateway.ok("POST", `/api/v1/${collection}`, { ...body, enabled: false });
    for (const next of [[], ["169.254.11.0/24"]]) {
      const response = await permit(next);
      const { error } = (await response.json()) as { error: string };
      expect([response.status, error]).toEqual([
        400,
        expect.stringMatching(/^permitted_destinations: .* connects to addresses that it would no/),
      ]);
      expect(error).toContain(named);
    }
    // Whatever still covers it may follow, and anything once the object is gone.
    expect((await permit([at])).status).toBe(200);
    const path = collection.endsWith("/targets") ? "targets" : collection;
    await gateway.ok("DELETE", `/api/v1/${path}/${id}`);
    expect((await permit([])).status).toBe(200);
  });

  test("at most ten are named, and addresses that were never permitted do not count", async () => {
    expect((await permit([at])).status).toBe(200);
    const { id } = await gateway.ok("POST", "/api/v1/services", {
      name: "many",
      targets: Array.from({ length: 13 }, (_, n) => ({ host: at, port: 1000 + n, enabled: false })),
    });
    const { error } = (await (await permit([])).json()) as { error: string };
    expect(error).toContain(" and 3 more connect to addresses");
    await gateway.ok("DELETE", `/api/v1/services/${id}`);
    await gateway.ok("POST", "/api/v1/plugins", {
      ...{ name: "ip-restriction", enabled: false, config: { deny: [at, "169.254.0.0/16"] } },
    });
    expect((await permit([])).status).toBe(200);
  });
});
