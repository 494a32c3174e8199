// Plugins as users configure them: written over the management API, run by a real gateway with two workers, with databases of addresses.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../support/data-plane.ts";
import { asnDatabase, countryDatabase } from "../../support/mmdb.ts";
import { talk, useListeners } from "../listeners/world.ts";
import { clientId, clientSecret, LyingProvider } from "../sso/lying-provider.ts";

const { api, listener } = useListeners();
const directory = mkdtempSync(join(tmpdir(), "sluice-policy-"));
const HASH = await Bun.password.hash("right", {
  algorithm: "argon2id",
  memoryCost: 64,
  timeCost: 1,
});

let provider: LyingProvider;
let port = 0;
const keys: Record<string, string> = {};

beforeAll(async () => {
  provider = await LyingProvider.start();
  port = await listener("policies", { trusted_proxies: ["127.0.0.1/32"] });
  for (const username of ["alice", "bob"]) {
    await api.create("/consumers", { username });
    keys[username] = (
      await api.create(`/consumers/${username}/credentials`, { type: "key" })
    ).secret;
  }
});
afterAll(async () => {
  await provider.stop();
  rmSync(directory, { recursive: true });
});
beforeEach(async () => {
  const { body } = await api.call("GET /plugins");
  for (const { id } of body) await api.call(`DELETE /plugins/${id}`);
});

const use = (name: string, config: object, where: object = {}) =>
  api.create("/plugins", { name, config, ...where });

/** On a connection of its own, so that either worker may get it. */
async function visit(headers: Readonly<Record<string, string>> = {}, path = "/") {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = await talk(port, [
    `GET ${path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n${lines.join("")}\r\n`,
  ]);
  const field = (name: string) => new RegExp(`^${name}: (.*)\\r$`, "im").exec(text)?.[1] ?? null;
  return { status: Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]), field };
}

describe("of several instances the one of the most specific scope runs", () => {
  const places = [
    { scope: "consumer_route", where: { consumer_id: "alice", route_id: "mirror" } },
    { scope: "consumer_service", where: { consumer_id: "alice", service_id: "mirror" } },
    { scope: "consumer", where: { consumer_id: "alice" } },
    { scope: "route", where: { route_id: "mirror" } },
    { scope: "service", where: { service_id: "mirror" } },
    { scope: "global", where: {} },
  ];

  test("for an identified client, one after the other as they are deleted", async () => {
    await use("key-auth", {});
    const alice = { "X-API-Key": keys["alice"] ?? "" };
    const bob = { "X-API-Key": keys["bob"] ?? "" };
    const ids: string[] = [];
    for (const { scope, where } of places)
      ids.push((await use("security-headers", { csp: `report-uri /${scope}` }, where)).id);
    for (const [at, { scope }] of places.entries()) {
      for (let time = 0; time < 4; time++) {
        const own = await visit(alice);
        expect([own.status, own.field("content-security-policy")]).toEqual([
          200,
          `report-uri /${scope}`,
        ]);
        const shared = places.slice(Math.max(at, 3))[0]?.scope;
        const other = await visit(bob);
        expect(other.field("content-security-policy")).toBe(`report-uri /${shared}`);
      }
      await api.call(`DELETE /plugins/${ids[at]}`);
    }
    expect((await visit(alice)).field("content-security-policy")).toBeNull();
  });

  test("a second one of the same scope is refused", async () => {
    for (const { where } of places) await use("security-headers", {}, where);
    for (const { where } of places) {
      const body = { name: "security-headers", ...where };
      expect((await api.call("POST /plugins", { body })).status).toBe(409);
    }
  });

  test("on a stream route", async () => {
    const echo = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket, bytes) => void socket.write(bytes) },
    });
    const listen_port = freePort();
    const targets = [{ host: "127.0.0.1", port: echo.port }];
    await api.create("/services", { name: "echo", protocol: "tcp", targets });
    const where = { listen_address: "127.0.0.1", listen_port, service_id: "echo" };
    await api.create("/stream-routes", { name: "echo", ...where });
    const hello = () =>
      new Promise<string>((resolve) => {
        const socket = connect({ port: listen_port, host: "127.0.0.1" }, () => socket.write("hi"));
        socket.on("error", () => {});
        socket.once("data", (bytes) => {
          resolve(String(bytes));
          socket.destroy();
        });
        socket.once("close", () => resolve("closed"));
      });
    try {
      await use("ip-restriction", { deny: ["127.0.0.0/8"] });
      expect(await hello()).toBe("closed");
      await use("ip-restriction", { deny: ["127.0.0.0/8"] }, { service_id: "echo" });
      const own = await use("ip-restriction", {}, { stream_route_id: "echo" });
      expect(await hello()).toBe("hi");
      await api.call(`DELETE /plugins/${own.id}`);
      expect(await hello()).toBe("closed");
    } finally {
      echo.stop(true);
    }
  });
});

describe("access-policy", () => {
  const home = { "X-Forwarded-For": "192.168.1.7" };
  const away = { "X-Forwarded-For": "203.0.113.9" };
  const homeOrLogin = {
    rules: [{ name: "home", when: { cidr: ["192.168.0.0/16"] }, action: "allow" }],
    default: "challenge",
  };

  test("from home, or with a password", async () => {
    await use("access-policy", homeOrLogin);
    await use("basic-auth", { users: [{ username: "ann", password_hash: HASH }] });
    const login = { Authorization: `Basic ${btoa("ann:right")}` };
    const wrong = { Authorization: `Basic ${btoa("ann:wrong")}` };
    expect((await visit(home)).status).toBe(200);
    const asked = await visit(away);
    expect([asked.status, asked.field("www-authenticate")]).toEqual([
      401,
      'Basic realm="sluice", charset="UTF-8"',
    ]);
    expect((await visit({ ...away, ...login })).status).toBe(200);
    expect((await visit({ ...away, ...wrong })).status).toBe(401);
  });

  test("from home, or logged in at a provider, also where authentication is optional", async () => {
    const own = { issuer: provider.issuer, client_id: clientId, client_secret: clientSecret };
    await use("access-policy", homeOrLogin);
    await use("oidc", { ...own, unauth_action: "pass" });
    expect((await visit(home)).status).toBe(200);
    expect((await visit({ ...away, Accept: "text/html" })).status).toBe(401);
    const { body } = await api.call("GET /plugins");
    const { id } = body.find(({ name }: { name: string }) => name === "oidc");
    await api.call(`PATCH /plugins/${id}`, { body: { config: { unauth_action: "auth" } } });
    const led = await visit({ ...away, Accept: "text/html" }, "/page");
    expect(led.status).toBe(302);
    expect(led.field("location")).toStartWith(provider.issuer);
    expect((await visit({ ...away, Accept: "application/json" })).status).toBe(401);
    expect((await visit({ ...home, Accept: "text/html" })).status).toBe(200);
  });

  test("shows every decision in the list of requests, however long the names are", async () => {
    const name = "r".repeat(64);
    await use("access-policy", { rules: [{ name, when: {}, action: "challenge" }] });
    await use("key-auth", {});
    const refused = await visit({ "X-API-Key": "nobody's" });
    expect(refused.status).toBe(401);
    // It is reported a moment after its response, and another worker's earlier request may be listed later.
    const reasons = await eventually(async () => {
      const { status, body } = await api.call(`GET /requests/${refused.field("x-request-id")}`);
      return status === 200 ? body.reasons : null;
    });
    expect(reasons).toEqual([`policy.challenge:${name}`, "auth.key.unknown"]);
  });

  test("by country and network of the client", async () => {
    const file = (name: string, bytes: Uint8Array) => {
      const path = join(directory, name);
      writeFileSync(path, bytes);
      return path;
    };
    const geoip = {
      country_db: file(
        "c.mmdb",
        countryDatabase({ "203.0.113.0/24": "DE", "2001:db8::/32": "FR" }),
      ),
      asn_db: file("a.mmdb", asnDatabase({ "203.0.113.0/24": 64_500, "198.51.100.0/24": 64_501 })),
    };
    const stored = await api.call("PATCH /settings", { body: { geoip } });
    expect(stored.status).toBe(200);
    await use("access-policy", {
      rules: [
        { when: { country: ["DE"], not: { asn: [64_500] } }, action: "allow" },
        { name: "bad-network", when: { asn: [64_500] }, action: "deny" },
        { when: { country: ["FR"] }, action: "allow" },
        { when: { asn: [64_501] }, action: "allow" },
      ],
      default: "deny",
      deny_status: 451,
    });
    const cases = [
      ["203.0.113.9", 451],
      ["2001:db8::1", 200],
      ["198.51.100.1", 200],
      ["192.0.2.1", 451],
    ] as const;
    for (const [address, status] of cases)
      for (let time = 0; time < 4; time++)
        expect([address, (await visit({ "X-Forwarded-For": address })).status]).toEqual([
          address,
          status,
        ]);
    const { body } = await api.call("GET /requests?limit=20");
    const reasons = body.flatMap((request: { reasons: string[] }) => request.reasons);
    expect(reasons).toContain("policy.deny:bad-network");
    expect(reasons).toContain("policy.deny:default");
  });
});
