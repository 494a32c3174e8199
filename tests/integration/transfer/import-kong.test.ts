// Routes of Kong beside each other, of which some keep clients out: a table of requests with what Kong's router makes of each.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomRequest, randomRoutes, routed, takesHost } from "../../e2e/import/kong-router.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { H2Client } from "../../support/h2-client.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { type Asked, ask, startOpenOrigin } from "../../e2e/import/judge.ts";

const origins = [startOpenOrigin("one"), startOpenOrigin("two")];
const [one = 0, two = 0] = origins.map(({ port }) => port ?? 0);

const key = { plugins: [{ name: "key-auth" }] };
const unknown = { plugins: [{ name: "openid-connect", config: { issuer: "https://id.test" } }] };
const all = { paths: ["/"], strip_path: false };
const at = (host: string, ...routes: object[]) =>
  routes.map((route, index) => ({ name: `${host}-${index}`, hosts: [host], ...all, ...route }));

const configuration = {
  _format_version: "3.0",
  services: [
    {
      name: "one",
      url: `http://127.0.0.1:${one}`,
      routes: [
        ...at("k0.test", {}, { paths: ["/admin"], ...key }),
        ...at("k2.test", {}, { paths: ["~/admin/\\d+$"], ...key }),
        ...at("k3.test", {}, { headers: { "x-area": ["admin"] }, ...key }),
        ...at("k4.test", key, { headers: { "x-role": ["robot"] } }),
        ...at("*.zone", {}),
        { name: "k5-any", ...all, hosts: ["k5.*"], paths: ["/admin"], ...key },
        ...at("k7.test", key, { methods: ["GET"] }),
        ...at("k8.test", {}, { paths: ["/admin"], ...unknown }),
        ...at("k9.test", {}, { paths: ["/admin"], plugins: [{ name: "request-termination" }] }),
        ...at(
          "k10.test",
          { paths: ["/a"], ...key },
          { paths: ["/a/b"] },
          { paths: ["/a/b/c"], ...key },
        ),
        ...at("k11.test", { paths: ["/x/"], strip_path: true, ...key }, { paths: ["/"] }),
        ...at("k12.test", {
          plugins: [
            { name: "request-termination", config: { status_code: 200, body: "secret" } },
            { name: "key-auth" },
          ],
        }),
        ...at("k13.test:8443", key),
        { name: "k13-all", ...all, hosts: ["*.test"], paths: ["/open"] },
        ...at("k14.test", {}, { paths: ["/caf\u00e9", "/a%2Fb"], ...key }),
        ...at("k15.test", {}, { paths: ["/admin"], snis: ["k15.test"], ...key }),
        ...at("k16.test", {}, { paths: ["~/(?<!x)admin"], ...key }),
        ...at("k18.test", {}, { paths: ["~/users/(?<id>[^/]+)/admin$"], ...key }),
        { name: "k19-all", hosts: ["k19.test"], methods: ["GET"] },
        { name: "k19-x", hosts: ["k19.test"], methods: ["GET"], paths: ["~/a[^/]*x"], ...key },
        ...at("k17.test", { paths: ["/admin"], protocols: ["https"], ...key }, {}),
      ],
    },
    {
      name: "two",
      url: `http://127.0.0.1:${two}`,
      routes: at("k1.test", { paths: ["/public"] }),
    },
    {
      name: "rest",
      url: `http://127.0.0.1:${one}`,
      ...key,
      routes: at("k1.test", { name: "k1-rest" }),
    },
  ],
  consumers: [{ username: "alice", keyauth_credentials: [{ key: "alice-has-a-long-key" }] }],
};

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  const answer = await gateway.api("POST", "/api/v1/import?from=kong", configuration);
  expect(answer.status).toBe(200);
});
afterAll(async () => {
  await gateway?.stop();
  for (const server of origins) await server.stop(true);
});

/** The origin that responds in Kong, and here; null for none. */
type Row = readonly [request: Asked | string, kong: string | null, here: string | null];

const parse = (request: Asked | string): Asked => {
  if (typeof request !== "string") return request;
  const slash = request.indexOf("/");
  return { host: request.slice(0, slash), path: request.slice(slash) };
};
const withField = (request: string, fields: string): Asked => ({
  ...parse(request),
  fields: `${fields}\r\n`,
});

test.each<Row>([
  // A prefix of Kong takes whatever begins with it.
  ["k0.test/", "one", "one"],
  ["k0.test/admin", null, null],
  ["k0.test/admin/x", null, null],
  ["k0.test/adminx", null, null],
  ["k0.test/admin.php", null, null],
  ["k0.test/ADMIN", "one", "one"],
  ["k0.test//admin", null, null],
  ["k0.test/%61dmin", null, null],
  ["k0.test/admin%2Fx", null, null],
  ["k0.test/x/../admin", null, null],
  ["k0.test/admin;x", null, null],
  ["k0.test/x;y/admin", "one", "one"],
  ["k0.test/x%2Fy//z", "one", "one"],
  // What is let in beside a route that is not takes no more than it did.
  ["k1.test/public", "two", "two"],
  ["k1.test/publicx", "two", "two"],
  ["k1.test/public/x", "two", "two"],
  ["k1.test/PUBLIC", null, null],
  ["k1.test/x", null, null],
  ["k1.test/x;y/public", null, null],
  ["k1.test/;y/public", null, null],
  ["k1.test/%3Bx/public", null, null],
  ["k1.test/;x/../public", "two", "two"],
  // Expressions begin where the path does, and may end before it.
  ["k2.test/admin/12", null, null],
  ["k2.test//admin/12", null, null],
  ["k2.test/admin%2F12", null, null],
  ["k2.test/admin/12/x", "one", "one"],
  ["k2.test/x/admin/12", "one", "one"],
  // Fields are compared regardless of case, line by line.
  [withField("k3.test/", "X-Area: admin"), null, null],
  [withField("k3.test/", "X-Area: ADMIN"), null, null],
  [withField("k3.test/", "X-Area: other\r\nX-Area: Admin"), null, null],
  [withField("k3.test/", "X-Area: administrator"), "one", "one"],
  [withField("k4.test/", "X-Role: robot"), "one", "one"],
  [withField("k4.test/", "X-Role: Robot"), "one", "one"],
  [withField("k4.test/", "X-Role: robots"), null, null],
  [withField("k4.test/", "X-Role: x, robot"), null, null],
  ["k4.test/", null, null],
  // Names with a * at their end.
  ["k5.zone/", "one", "one"],
  ["k5.zone/admin", null, null],
  ["k5.zone/adminx", null, null],
  ["K5.zone/admin", null, null],
  ["k5.zone:8080/admin", null, null],
  ["x.zone/admin", "one", "one"],
  ["k5.other/admin", null, null],
  ["xk5.other/admin", null, null],
  // Methods and other kinds of plugins.
  ["k7.test/", "one", "one"],
  [{ host: "k7.test", path: "/", method: "POST" }, null, null],
  [{ host: "k7.test", path: "/", method: "HEAD" }, null, null],
  ["k8.test/admin", null, null],
  ["k8.test/adminx", null, null],
  ["k8.test/", "one", "one"],
  ["k9.test/adminx", null, null],
  ["k9.test/", "one", "one"],
  // Of several prefixes the longest decides.
  ["k10.test/a/x", null, null],
  ["k10.test/a/b", "one", "one"],
  ["k10.test/a/bx", "one", "one"],
  ["k10.test/a/b/cx", null, null],
  ["k10.test/a%2Fb", null, null],
  ["k11.test/x/y", null, null],
  ["k11.test/x", "one", "one"],
  ["k11.test/x%2Fy", null, null],
  ["k12.test/", null, null],
  ["k13.test/", null, null],
  ["k13.test:8443/open", null, null],
  ["k13.test/open", "one", null],
  ["k14.test/caf%C3%A9", null, null],
  ["k14.test/caf%c3%a9/x", null, null],
  ["k14.test/a%2Fb", null, null],
  ["k14.test/a%2fb", null, null],
  ["k14.test/", "one", "one"],
  ["k15.test/adminx", null, null],
  ["k16.test/admin", null, null],
  ["k17.test/adminx", null, null],
  // What one server reads as one segment is two to another, or none.
  ["k18.test/users/1/admin", null, null],
  ["k18.test/users/1%2F2/admin", null, null],
  ["k18.test/users/1%5C2/admin", null, null],
  ["k18.test/users/;x/admin", null, null],
  ["k18.test/users/1/2/admin", "one", "one"],
  ["k19.test/a;x", null, null],
  ["k19.test/a%2Fx", null, null],
  ["k19.test/ax", null, null],
  ["k19.test/ay", "one", "one"],
  ["k17.test/", "one", "one"],
])("%j: %j in Kong, %j here", async (request, kong, here) => {
  const verdict = await ask(parse(request), gateway.httpPort);
  expect(verdict.open).toBe(here);
  expect([null, kong]).toContain(verdict.open);
});

test("a name with a trailing * applies to HTTP/2 too", async () => {
  const client = await H2Client.connect({ port: gateway.httpsPort, tls: true });
  for (const [path, status] of [
    ["/", 200],
    ["/adminx", 401],
  ] as const) {
    const stream = client.headers([
      [":method", "GET"],
      [":scheme", "https"],
      [":authority", "k5.zone"],
      [":path", path],
    ]);
    expect((await client.result(stream)).status).toBe(status);
  }
  client.close();
});

test("with a key everything is restored", async () => {
  for (const path of ["/admin", "/adminx", "/admin/x"]) {
    const fields = "apikey: alice-has-a-long-key\r\n";
    const verdict = await ask({ host: "k0.test", path, fields }, gateway.httpPort);
    expect([path, verdict.open]).toEqual([path, "one"]);
  }
});

const ROUNDS = Number(process.env["SLUICE_TEST_ROUNDS"] ?? 25);
const SEED = seedOfRun(20);

test(`routes made at random with the seed ${SEED}: no request gets anywhere where Kong does not let it`, async () => {
  const found: string[] = [];
  let open = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const random = new Random(SEED * 100_003 + round);
    const routes = randomRoutes(random);
    const services = routes.map((route, index) => ({
      name: `s${index}`,
      url: `http://127.0.0.1:${one}`,
      routes: [route],
    }));
    const answer = await gateway.api("POST", "/api/v1/import?from=kong&mode=replace", {
      _format_version: "3.0",
      services,
    });
    expect(answer.status).toBe(200);
    for (let count = 0; count < 100; count++) {
      const request = randomRequest(random);
      const fields = request.lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      const verdict = await ask({ ...request, fields }, gateway.httpPort);
      if (verdict.open === null) continue;
      open += 1;
      // Where no route denies access, paths are compared as written.
      const isGuarded = routes.some((each) => each.plugins && takesHost(each, request.host));
      if (isGuarded && routed(routes, request).every(({ plugins }) => plugins !== undefined))
        found.push(JSON.stringify({ round, request, routes }));
    }
  }
  expect(found).toEqual([]);
  expect(open).toBeGreaterThan(ROUNDS * 5);
});
