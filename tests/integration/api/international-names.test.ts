// International host names: accepted wherever a host name is, stored and matched as A-labels, and kept apart from look-alikes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Anything, convertWith } from "../../unit/import/samples.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const STORED = "xn--mller-kva.example";
let gateway: Gateway;
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ headers }) => new Response(headers.get("host")),
});
beforeAll(async () => {
  gateway = await startGateway();
  await post("/services", { name: "tcp", protocol: "tcp" });
});
afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
});

async function send(method: string, path: string, body: object) {
  const response = await fetch(`${gateway.admin}/api/v1${path}`, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Anything };
}

const post = (path: string, body: object) => send("POST", path, body);

describe("a name in Unicode is stored as A-labels", () => {
  test.each<[string, object, (created: Anything) => unknown, unknown]>([
    [
      "/routes",
      { hosts: ["MÜLLER.example", "*.müller.example"] },
      ({ hosts }) => hosts,
      [STORED, `*.${STORED}`],
    ],
    [
      "/services",
      {
        name: "s",
        host_header: "müller.example",
        tls: { server_name: "müller.example" },
        targets: [{ host: "müller.example", port: 80 }],
      },
      ({ host_header, tls, targets }) => [host_header, tls.server_name, targets[0].host],
      [STORED, STORED, STORED],
    ],
    [
      "/listeners",
      { name: "l", address: "127.0.0.1", port: 1, enabled: false, hosts: ["müller.example"] },
      ({ hosts }) => hosts,
      [STORED],
    ],
    [
      "/certificates",
      { name: "c", source: "self_signed", domains: ["müller.example", "*.müller.example"] },
      ({ domains }) => domains,
      [STORED, `*.${STORED}`],
    ],
    [
      "/applications",
      { name: "a", domains: ["app.müller.example"], upstream: "http://müller.example:3000/x" },
      ({ domains, upstream }) => [domains, upstream],
      [[`app.${STORED}`], `http://${STORED}:3000/x`],
    ],
    [
      "/plugins",
      {
        name: "respond",
        when: { host: ["müller.example"] },
        config: { status: 204 },
        enabled: false,
      },
      ({ when }) => when.host,
      [STORED],
    ],
    [
      "/stream-routes",
      {
        name: "t",
        protocol: "tcp",
        tls_mode: "passthrough",
        listen_port: 20002,
        enabled: false,
        sni: ["müller.example"],
        service_id: "tcp",
      },
      ({ sni }) => sni,
      [STORED],
    ],
  ])("%s", async (path, body, of, stored) => {
    const { status, body: created } = await post(path, body);
    expect([status, status === 200 ? of(created) : created.error]).toEqual([200, stored]);
  });

  test("in settings", async () => {
    const { body } = await send("PATCH", "/settings", { public_url: "https://müller.example" });
    expect(body.public_url).toBe(`https://${STORED}`);
  });
});

test("requests with A-labels match, and look-alikes stay apart", async () => {
  const { body: service } = await post("/services", {
    name: "origin",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  const hosts = ["straße.example", "strasse.example", "аpple.example"];
  for (const host of hosts) {
    const { status } = await post("/routes", { hosts: [host], service_id: service.id });
    expect(status).toBe(200);
  }
  const ask = async (host: string) =>
    (await fetch(`http://127.0.0.1:${gateway.httpPort}`, { headers: { host } })).status;
  expect(await ask("xn--strae-oqa.example")).toBe(200);
  expect(await ask("XN--STRAE-OQA.EXAMPLE")).toBe(200);
  expect(await ask("strasse.example")).toBe(200);
  expect(await ask("xn--pple-43d.example")).toBe(200);
  expect(await ask("apple.example")).toBe(404);
});

test.each<[string, object, string]>([
  [
    "/routes",
    { hosts: ["ok.test", "ｅxample.com"] },
    "hosts[1]: is the name example.com in other characters",
  ],
  ["/routes", { hosts: ["müller.example:80"] }, "hosts[0]: must be a host name without a port"],
  ["/routes", { hosts: ["müller.example", STORED] }, "hosts[1]: duplicates hosts[0]"],
  [
    "/certificates",
    { name: "d", source: "self_signed", domains: ["ü b"] },
    "domains[0]: is not a valid host name",
  ],
  [
    "/services",
    { name: "x", targets: [{ host: "a\u200db", port: 1 }] },
    "targets[0].host: is not a valid host name",
  ],
])("%s %j is refused with its field", async (path, body, message) => {
  const { status, body: error } = await post(path, body);
  expect([status, error.error]).toEqual([400, expect.stringContaining(message)]);
});

describe("imports", () => {
  test.each<["nginx" | "traefik" | "haproxy" | "kong" | "caddy", unknown]>([
    [
      "nginx",
      "http { server { listen 80; server_name müller.example; location / { proxy_pass http://127.0.0.1:1; } } }",
    ],
    [
      "traefik",
      "http:\n  routers:\n    r: { rule: 'Host(`müller.example`)', service: s }\n  services:\n    s: { loadBalancer: { servers: [{ url: 'http://127.0.0.1:1' }] } }\n",
    ],
    [
      "haproxy",
      "defaults\n  mode http\nfrontend f\n  bind *:80\n  acl h hdr(host) -i müller.example\n  use_backend b if h\nbackend b\n  server s 127.0.0.1:1\n",
    ],
    [
      "kong",
      {
        _format_version: "3.0",
        services: [
          {
            name: "s",
            url: "http://127.0.0.1:1",
            routes: [{ name: "r", hosts: ["müller.example"] }],
          },
        ],
      },
    ],
    [
      "caddy",
      {
        apps: {
          http: {
            servers: {
              s: {
                listen: [":80"],
                routes: [
                  {
                    match: [{ host: ["müller.example"] }],
                    handle: [{ handler: "reverse_proxy", upstreams: [{ dial: "127.0.0.1:1" }] }],
                  },
                ],
              },
            },
          },
        },
      },
    ],
  ])("of %s keep the name", async (from, source) => {
    const { document } = await convertWith(from as never, source as never);
    const hosts = [...(document.routes ?? []), ...(document.applications ?? [])].flatMap(
      ({ hosts: own, domains }: Anything) => own ?? domains ?? [],
    );
    expect(hosts).toContain(STORED);
  });
});

test("a configuration file with such a target twice is the same target", async () => {
  const file = {
    format: (await gateway.ok("GET", "/api/v1/export")).format,
    services: [{ name: "twice" }],
    targets: [{ service_id: "twice", host: "müller.example", port: 99 }],
  };
  for (const _ of [1, 2]) {
    const { status } = await post("/import", file);
    expect(status).toBe(200);
  }
  const { body } = await send("PATCH", "/services/twice", {});
  expect(body.targets.map(({ host }: Anything) => host)).toEqual([STORED]);
});
