// POST /routes/explain: the worker's routing decision for hypothetical requests, compared with real ones.
import { engines } from "../../support/engines.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { exchange } from "../../support/raw-exchange.ts";

let gateway: Gateway;
let origin: Origin;
beforeAll(async () => {
  origin = startOrigin({ answer: (request) => reply(request.target) });
  gateway = await startGateway();
  await gateway.ok("PATCH", "/api/v1/settings", { debug_headers: true });
  await gateway.ok("POST", "/api/v1/services", {
    name: "app",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

const upgradeWorld = {
  listeners: { bun: quietPort(), sluice: quietPort() },
  routes: [
    { name: "upgrades-on", hosts: ["on.upgrades.test"] },
    { name: "upgrades-docker", hosts: ["docker.upgrades.test"], upgrade_protocols: ["tcp"] },
    { name: "upgrades-off", hosts: ["off.upgrades.test"], websocket: false },
    { name: "upgrades-h2", hosts: ["h2.upgrades.test"], service_id: "calls" },
  ],
};
const bunPort = quietPort();

const explain = (request: object) => gateway.ok("POST", "/api/v1/routes/explain", request);
const route = (fields: { name: string; [field: string]: unknown }) =>
  gateway.ok("POST", "/api/v1/routes", { service_id: "app", ...fields });

describe("an explanation", () => {
  beforeAll(async () => {
    for (const fields of [
      { name: "shop", hosts: ["shop.test"], paths: ["/cart"], strip_path: true },
      { name: "posts", hosts: ["shop.test"], paths: ["/cart"], methods: ["POST"] },
      {
        name: "beta",
        hosts: ["shop.test"],
        headers: [{ name: "X-Beta", op: "equals", value: "1" }],
      },
      { name: "rest", hosts: ["shop.test"] },
      { name: "elsewhere", hosts: ["other.test"] },
      { name: "off", hosts: ["shop.test"], enabled: false },
      { name: "inside", hosts: ["inside.test"], client_cidrs: ["10.0.0.0/8"] },
      { name: "secure", hosts: ["secure.test"], https_redirect: true },
      { name: "closed", hosts: ["closed.test"], maintenance: { retry_after: 9 } },
      { name: "nowhere", hosts: ["nowhere.test"], service_id: null },
    ])
      await route(fields);
    await gateway.ok("POST", "/api/v1/listeners", {
      address: "127.0.0.1",
      name: "bun",
      port: bunPort,
      engine: "bun",
    });
    await gateway.ok("POST", "/api/v1/services", {
      name: "calls",
      protocol: "h2c",
      targets: [{ host: "127.0.0.1", port: 9 }],
    });
    await route({ name: "calls", hosts: ["calls.test"], service_id: "calls" });
  });

  test("names the route, its service and where the request would go", async () => {
    const answer = await explain({ method: "GET", url: "http://shop.test/cart/1?a=b#c" });
    expect(answer).toMatchObject({
      listener: { name: "http" },
      route: { name: "shop" },
      service: { name: "app" },
      outcome: "proxy",
      status: null,
      upstream: {
        url: `http://127.0.0.1:${origin.port}/1?a=b`,
        host: "shop.test",
        targets: [{ host: "127.0.0.1", port: origin.port, health: { state: "unknown" } }],
      },
      plugins: [],
      default_site: null,
    });
  });

  test("gives the first condition that each other route fails, in matching order", async () => {
    const { candidates } = await explain({ url: "http://shop.test/cart" });
    const lines = candidates.map(
      (one: { position: number; route: { name: string }; matched: boolean; reason: string }) =>
        `${one.position} ${one.route.name} ${one.matched} ${one.reason}`,
    );
    expect(lines.slice(0, 4)).toEqual([
      "1 posts false methods: GET is none of POST",
      "2 shop true null",
      '3 beta false headers[0]: X-Beta is absent and not "1"',
      "4 rest true another route matches first",
    ]);
    expect(lines).toContainEqual(
      expect.stringMatching(/^\d elsewhere false hosts: shop\.test is none of other\.test$/),
    );
    expect(lines.at(-1)).toBe("null off false enabled: the route is disabled");
  });

  describe("of an upgrade", () => {
    const key = { "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version": "13" };
    const asks = (upgrade: string, more: object = {}) => ({
      Connection: "Upgrade",
      Upgrade: upgrade,
      ...more,
    });
    const proxied = (reason: string) => ({
      outcome: "proxy",
      status: null,
      upgrade: { protocols: null, reason },
    });
    const webSocket = {
      outcome: "websocket",
      status: null,
      upgrade: { protocols: "websocket", reason: null },
    };
    const onlyWebSockets = proxied(
      "the engine of the listener passes no other upgrade than a WebSocket by GET",
    );
    const refused = (status: number, detail: string) => ({
      outcome: "refused",
      status,
      detail,
      upgrade: null,
      upstream: null,
    });
    const { listeners, routes } = upgradeWorld;
    beforeAll(async () => {
      for (const [engine, port] of Object.entries(listeners))
        await gateway.ok("POST", "/api/v1/listeners", {
          name: `upgrades-${engine}`,
          address: "127.0.0.1",
          port,
          engine,
        });
      for (const fields of routes) await route(fields);
    });

    const tcp = {
      bun: onlyWebSockets,
      sluice: { outcome: "upgrade", status: null, upgrade: { protocols: "tcp", reason: null } },
    };
    test.each([
      ["h2c", "carries HTTP"],
      ["HTTP/2.0", "carries HTTP"],
      ["tls/1.0", "carries HTTP"],
      ["a b", "must be a token of Upgrade"],
      ["tcp, websocket", "must be a token of Upgrade"],
    ])("a route cannot name %j", async (protocol, message) => {
      const body = { name: "x", upgrade_protocols: ["websocket", protocol] };
      const response = await gateway.api("POST", "/api/v1/routes", body);
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining(`upgrade_protocols[1]: ${message}`),
      ]);
    });

    describe.each(engines)("on the engine %s", (engine) => {
      const own = engine === "sluice";
      const cases: [why: string, request: object, expected: object][] = [
        ["no upgrade", {}, { outcome: "proxy", upgrade: null }],
        ["a WebSocket", { headers: asks("websocket", key) }, webSocket],
        [
          "a WebSocket without the fields of a handshake",
          { headers: asks("WebSocket") },
          webSocket,
        ],
        [
          "a wrong key",
          { headers: asks("websocket", { ...key, "Sec-WebSocket-Key": "short" }) },
          refused(400, "the Sec-WebSocket-Key is not valid"),
        ],
        [
          "another version",
          { headers: asks("websocket", { ...key, "Sec-WebSocket-Version": "8" }) },
          { outcome: "refused", status: 426, upgrade: null },
        ],
        ["another protocol", { headers: asks("tcp") }, tcp[engine]],
        ["another protocol by POST", { method: "POST", headers: asks("tcp") }, tcp[engine]],
        [
          "several protocols",
          { headers: asks("h2c, foo/2, tcp") },
          own
            ? { outcome: "upgrade", upgrade: { protocols: "foo/2, tcp", reason: null } }
            : onlyWebSockets,
        ],
        [
          "protocols that carry HTTP",
          { headers: asks("h2c") },
          own ? proxied("the gateway passes none of the protocols in Upgrade") : onlyWebSockets,
        ],
        [
          "another method",
          { method: "PUT", headers: asks("tcp") },
          own ? proxied("only GET and POST requests are upgraded") : onlyWebSockets,
        ],
        [
          "Upgrade that Connection does not name",
          { headers: { Upgrade: "tcp" } },
          proxied("the field Connection does not name Upgrade"),
        ],
        [
          "a WebSocket that the route does not name",
          { url: "docker", headers: asks("websocket", key) },
          proxied("upgrade_protocols of the route has none of those in Upgrade"),
        ],
        [
          "a protocol that the route names",
          { url: "docker", headers: asks("TCP") },
          own
            ? { outcome: "upgrade", upgrade: { protocols: "TCP", reason: null } }
            : onlyWebSockets,
        ],
        [
          "one of them",
          { url: "docker", headers: asks("foo/2, tcp") },
          own ? tcp.sluice : onlyWebSockets,
        ],
        [
          "a route with websocket: false",
          { url: "off", headers: asks("websocket", key) },
          proxied("the route passes no upgrades (websocket: false)"),
        ],
        [
          "targets of HTTP/2",
          { url: "h2", headers: asks("tcp") },
          own ? proxied("the targets speak HTTP/2, which has no upgrades") : onlyWebSockets,
        ],
      ];
      test.each(cases)("%s", async (_, { url = "on", ...request }: { url?: string }, expected) => {
        const at = `http://${url}.upgrades.test:${listeners[engine]}/`;
        expect(await explain({ ...request, url: at })).toMatchObject(expected);
      });
    });
  });

  test.each([
    [{ url: "http://shop.test/cart", method: "POST" }, "posts"],
    [{ url: "http://shop.test/", headers: { "x-BETA": "1" } }, "beta"],
    [{ url: "http://127.0.0.1/", headers: { Host: "SHOP.test:81" } }, "rest"],
    [{ url: "http://shop.test/x/../cart" }, "shop"],
    [{ url: "http://shop.test/%63art" }, "shop"],
    [{ url: "https://inside.test/", client_ip: "10.1.2.3" }, "inside"],
    [{ url: "https://inside.test/", client_ip: "11.1.2.3" }, null],
    [
      {
        url: "https://inside.test/",
        client_ip: "11.1.2.3",
        headers: { "x-forwarded-for": "10.0.0.1" },
      },
      null,
    ],
  ])("%j: %p", async (request, name) => {
    expect((await explain(request)).route?.name ?? null).toBe(name);
  });

  test.each([
    [
      "http://secure.test/a?b",
      { outcome: "redirect", status: 308, detail: "https://secure.test/a?b" },
    ],
    ["https://secure.test/a?b", { outcome: "proxy", status: null }],
    ["http://closed.test/", { outcome: "maintenance", status: 503 }],
    ["http://nowhere.test/", { outcome: "unavailable", status: 503 }],
    [
      "http://unknown.test/",
      { outcome: "default_site", route: null, default_site: { action: "404" } },
    ],
    ["http://shop.test/%2e%2e%2fx", { outcome: "refused", status: 400, route: null }],
  ])("%s: %j", async (url, want) => {
    expect(await explain({ url })).toMatchObject(want);
  });

  test.each([
    {
      why: "Bun's, which answers gRPC with 421",
      url: `http://calls.test:${bunPort}/a.B/C`,
      contentType: "application/grpc+proto",
      view: {
        outcome: "refused",
        status: 421,
        detail: expect.stringContaining('needs engine "sluice"'),
        engine: { name: "bun", reason: "The listener has Bun's engine." },
        grpc: { service: "a.B", method: "C" },
        upstream: null,
      },
    },
    {
      why: "our own",
      url: "http://calls.test/a.B/C",
      contentType: "application/grpc",
      view: {
        outcome: "proxy",
        status: null,
        engine: { name: "sluice", reason: "The listener has the gateway's own engine." },
        grpc: { service: "a.B", method: "C" },
        upstream: { url: `h2c://127.0.0.1:9/a.B/C` },
      },
    },
  ])("names the engine: $why", async ({ url, contentType = "text/plain", view }) => {
    const headers = { "content-type": contentType };
    expect(await explain({ method: "POST", url, headers })).toMatchObject(view);
  });

  test("changes nothing and sends nothing", async () => {
    const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
    const { length } = origin.requests;
    await explain({ url: "http://shop.test/" });
    expect((await gateway.ok("GET", "/api/v1/admin/status")).revision).toBe(revision);
    expect(origin.requests.length).toBe(length);
  });

  test.each([
    [{}, "url: is required"],
    [{ url: "/cart" }, "url: must be an absolute address such as https://shop.example.com/cart"],
    [
      { url: "ftp://shop.test/" },
      "url: must be an absolute address such as https://shop.example.com/cart",
    ],
    [{ url: "http://" }, "url: must be an absolute address such as https://shop.example.com/cart"],
    [{ url: "http://a.test/", method: "G T" }, "method: must be a method such as GET"],
    [{ url: "http://a.test/", client_ip: "a.test" }, "client_ip: must be an IP address"],
    [{ url: "http://a.test/", headers: { "a b": "1" } }, "headers.a b: is not a header field"],
    [{ url: "http://a.test/", headers: { a: "1\n2" } }, "headers.a: is not a header field"],
    [{ url: "http://a.test/", extra: 1 }, "extra: is not a known field"],
  ])("%j is rejected", async (body, error) => {
    const response = await gateway.api("POST", "/api/v1/routes/explain", body);
    expect([response.status, await response.json()]).toEqual([400, { error }]);
  });
});

describe("the explanation equals the real decision", () => {
  const seed = seedOfRun();
  const hosts = ["a.test", "b.a.test", "c.b.a.test", "other.test"];
  const paths = ["/", "/x", "/x/y", "/x/y/z", "/X", "/x%20y", "/~u"];
  const methods = ["GET", "POST", "PUT"];

  function randomRoute(random: Random, name: string) {
    const some = <T>(items: readonly T[]) =>
      random.chance(0.5) ? [] : [...new Set([random.pick(items), random.pick(items)])];
    return {
      name,
      hosts: some([...hosts, "*.a.test", "*.test"]),
      paths: some(["/x", "/x/y", "=/x", "=/x/y/z", "~^/x/[yz]", "/"]),
      methods: some(methods),
      headers: random.chance(0.3)
        ? [{ name: "X-One", op: random.pick(["present", "absent"] as const), value: "" }]
        : [],
      query: random.chance(0.2) ? [{ name: "q", op: "equals", value: "1" }] : [],
      client_cidrs: random.chance(0.1) ? [random.pick(["127.0.0.0/8", "10.0.0.0/8"])] : [],
      protocols: random.chance(0.1) ? ["https"] : ["http", "https"],
      priority: random.pick([0, 0, 0, 1, -1]),
      enabled: !random.chance(0.1),
    };
  }

  test(`for random routes and requests (seed ${seed})`, async () => {
    const random = new Random(seed);
    for (let table = 0; table < 4; table++) {
      const made: string[] = [];
      for (let i = 0; i < 12; i++) {
        const fields = randomRoute(random, `random-${table}-${i}`);
        made.push((await route(fields)).id);
      }
      for (let i = 0; i < 60; i++) {
        const [host, path, method] = [random.pick(hosts), random.pick(paths), random.pick(methods)];
        const target = path + random.pick(["", "?q=1", "?q=2"]);
        const headers: Record<string, string> = random.chance(0.5) ? { "X-One": "1" } : {};
        const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
        const bytes = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${method === "GET" ? "" : "Content-Length: 0\r\n"}${lines.join("")}\r\n`;
        const { answers } = await exchange(bytes, { port: gateway.httpPort, methods: [method] });
        const served = answers[0]?.header("x-sluice-route") ?? null;
        const url = `http://${host}:${gateway.httpPort}${target}`;
        const explained = await explain({ method, url, headers: { host, ...headers } });
        const first = explained.candidates.find(({ matched }: { matched: boolean }) => matched);
        const told = { request: bytes, route: explained.route?.id ?? null };
        expect(told).toEqual({ request: bytes, route: served });
        expect(first?.route.id ?? null).toBe(told.route);
        if (served !== null)
          expect(explained.upstream.url).toBe(`http://127.0.0.1:${origin.port}${answers[0]?.body}`);
      }
      for (const id of made) await gateway.ok("DELETE", `/api/v1/routes/${id}`);
    }
  });
});
