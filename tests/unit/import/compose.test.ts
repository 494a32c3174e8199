// Files of Docker Compose: which services are served under which names, and which are closed.
import { describe, expect, test } from "bun:test";
import { caddyLabelSites } from "../../../src/import/compose/caddy-labels.ts";
import { nginxProxySites } from "../../../src/import/compose/nginx-proxy.ts";
import { substituted } from "../../../src/import/compose/variables.ts";
import { type Anything, convertWith } from "./samples.ts";

async function made(services: object) {
  const { document, report } = await convertWith("compose", { services });
  const routes: readonly Anything[] = document.routes ?? [];
  const targets: readonly Anything[] = document.targets ?? [];
  return {
    document,
    report,
    routes,
    targets: targets.map(({ host, port }) => `${host}:${port}`),
    closed: routes.filter(({ maintenance }) => maintenance !== undefined).map(({ name }) => name),
  };
}

const user = "alice:$$2b$$05$$MhkTtlyhT7jGs040w89tq.moFGeyONR4LfL4X3wzJe7AffwYOLTo6";

describe("labels of Sluice", () => {
  const own = { "sluice.enable": "true", "sluice.host": "a.test, b.test" };

  test("are what discovery reads", async () => {
    const { document, routes, targets, report } = await made({
      web: {
        image: "x",
        ports: ["8080:80"],
        labels: {
          ...own,
          "sluice.path": "/app",
          "sluice.strip_path": "true",
          "sluice.health.path": "/up",
          "sluice.plugin.cors.origins": "https://a.test",
          "traefik.enable": "true",
        },
      },
      two: {
        image: "y",
        labels: [
          "sluice.enable=true",
          "sluice.1.host=one.test",
          "sluice.1.port=81",
          "sluice.2.host=two.test",
          "sluice.2.port=82",
          "sluice.2.scheme=https",
        ],
      },
    });
    expect(routes).toMatchObject([
      {
        name: "web",
        hosts: ["a.test", "b.test"],
        paths: [{ type: "prefix", value: "/app" }],
        strip_path: true,
      },
      { name: "two-1", hosts: ["one.test"] },
      { name: "two-2", hosts: ["two.test"] },
    ]);
    expect(targets).toEqual(["127.0.0.1:8080", "two:81", "two:82"]);
    expect(document.services).toMatchObject([
      { name: "web", health: { active: { path: "/up" } } },
      { name: "two-1", protocol: "http" },
      { name: "two-2", protocol: "https", tls: { verify: false } },
    ]);
    expect(document.plugins).toMatchObject([{ name: "cors", service_id: document.services[0].id }]);
    expect(report.filter(({ level }) => level === "omitted")).toEqual([]);
  });

  test.each([
    [{ "sluice.host": "a.test" }, "sluice.enable is not true"],
    [{ "sluice.enable": "true" }, "label sluice.host is missing"],
    [{ ...own, "sluice.prt": "80" }, "label sluice.prt is not known"],
    [{ ...own, "sluice.host": "${HOST}" }, "the value of ${HOST} is not in the file"],
    [
      { ...own, "sluice.plugin.basic-auth.users": "${USERS}" },
      "the value of ${USERS} is not in the file",
    ],
    [own, "it exposes no port"],
  ])("%j is not served, and the report says why", async (labels, why) => {
    const { routes, report } = await made({ web: { image: "x", labels } });
    expect(routes).toEqual([]);
    expect(report.map(({ why: said }) => said).join()).toContain(why);
  });
});

describe("labels of Traefik", () => {
  const rule = "traefik.http.routers.web.rule=Host(`${NAME:-web}.test`)";

  test("are read with the flags of Traefik's own service", async () => {
    const { document, routes, targets } = await made({
      proxy: {
        image: "traefik:v3",
        command: [
          "--entrypoints.web.address=:80",
          "--entryPoints.web.http.redirections.entryPoint.to=tls",
          "--entrypoints.tls.address=:443",
          "--entrypoints.pg.address=:5432",
          "--certificatesresolvers.le.acme.email=a@a.test",
        ],
      },
      web: {
        image: "x",
        labels: [
          rule,
          "traefik.http.routers.web.entrypoints=tls",
          "traefik.http.routers.web.tls.certresolver=le",
          "traefik.http.routers.web.middlewares=auth",
          `traefik.http.middlewares.auth.basicauth.users=${user}`,
        ],
        expose: [8080, 9090],
      },
      db: {
        image: "x",
        labels: {
          "traefik.tcp.routers.db.rule": "HostSNI(`*`)",
          "traefik.tcp.routers.db.entrypoints": "pg",
          "traefik.tcp.services.db.loadbalancer.server.port": 5432,
        },
      },
    });
    expect(routes).toMatchObject([
      { hosts: ["web.test"], protocols: ["http", "https"], https_redirect: 301 },
    ]);
    expect(targets).toEqual(["web:8080", "db:5432"]);
    expect(document.plugins[0]).toMatchObject({ name: "basic-auth" });
    expect(document.plugins[0].config.users[0].password_hash).toStartWith("$2b$05$");
    expect(document.stream_routes).toMatchObject([{ listen_port: 5432, enabled: false }]);
    expect(document.acme_accounts).toMatchObject([{ email: "a@a.test" }]);
  });

  test.each([
    ["8081:80", "127.0.0.1:8081"],
    ["10.0.0.5:8081:80", "10.0.0.5:8081"],
    ["80", "web:80"],
    [{ target: 80, published: "8081" }, "127.0.0.1:8081"],
    ["8081:81", "web:80"],
  ])("the published port %j leads to %s", async (port, target) => {
    const label = "traefik.http.services.web.loadbalancer.server.port=80";
    const { targets } = await made({ web: { labels: [rule, label], ports: [port] } });
    expect(targets).toEqual([target]);
  });

  test("containers that are not enabled are not served", async () => {
    const proxy = { image: "traefik", command: ["--providers.docker.exposedbydefault=false"] };
    const labels = [rule];
    const { routes, report } = await made({ proxy, web: { labels } });
    expect(routes).toEqual([]);
    expect(report).toContainEqual({
      level: "omitted",
      what: 'container "web"',
      why: "traefik.enable is not true",
    });
    const enabled = await made({ proxy, web: { labels: [...labels, "traefik.enable=true"] } });
    expect(enabled.routes).toHaveLength(1);
  });

  test("a variable without a default is named", async () => {
    const labels = ["traefik.http.routers.a.rule=Host(`${DOMAIN}`)"];
    const { report } = await made({ web: { labels } });
    expect(report).toContainEqual(
      expect.objectContaining({ why: "the value of ${DOMAIN} is not in the file" }),
    );
  });
});

test.each([
  ["traefik.http.routers.a.middlewares=${AUTH}", ["a"]],
  ["traefik.http.routers.a.entrypoints=${POINT}", ["a"]],
  ["traefik.http.routers.a.tls.certresolver=${RESOLVER}", []],
  ["traefik.http.services.a.loadbalancer.sticky.cookie.name=${NAME}", []],
])("without the value of %s, closed are %j", async (label, closed) => {
  const port = "traefik.http.services.a.loadbalancer.server.port=80";
  const labels = ["traefik.http.routers.a.rule=Host(`a.test`)", port, label];
  expect((await made({ web: { labels } })).closed).toEqual(closed);
});

test("routers that two containers define differently are closed, as Traefik rejects them", async () => {
  const rule = (host: string) => [`traefik.http.routers.a.rule=Host(\`${host}\`)`];
  const { closed } = await made({
    one: { labels: rule("a.test") },
    two: { labels: [...rule("a.test"), "traefik.http.routers.a.middlewares=x"] },
  });
  expect(closed).toEqual(["a"]);
});

test.each([
  ["a$$b", "a$b", null],
  ["${A:-b}c", "bc", null],
  ["${A-b}", "b", null],
  ["${A}", null, "A"],
  ["$A-b", null, "A"],
  ["${A:?must be set}", null, "A"],
] as const)("%s becomes %j", (source, text, missing) => {
  expect(substituted(source)).toEqual({ text, missing });
});

describe("variables of nginx-proxy", () => {
  test.each([
    [{ VIRTUAL_HOST: "a.test" }, [{ hosts: ["a.test"], port: null, path: null, https: false }]],
    [
      { VIRTUAL_HOST: "a.test,b.test", VIRTUAL_PORT: "3000", LETSENCRYPT_HOST: "a.test" },
      [
        { hosts: ["a.test"], port: 3000, https: true },
        { hosts: ["b.test"], port: 3000, https: false },
      ],
    ],
    [
      { VIRTUAL_HOST: "a.test", VIRTUAL_PATH: "/v1", VIRTUAL_DEST: "/", VIRTUAL_PROTO: "https" },
      [{ path: "/v1", stripPath: true, scheme: "https", lost: null }],
    ],
    [{ VIRTUAL_HOST: "a.test", NETWORK_ACCESS: "internal" }, [{ lost: "NETWORK_ACCESS" }]],
    [{ VIRTUAL_HOST: "a.test", VIRTUAL_PROTO: "fastcgi" }, [{ lost: "VIRTUAL_PROTO" }]],
    [
      { VIRTUAL_HOST_MULTIPORTS: "a.test:\n  /: {port: 80}\n  /x: {port: 81, dest: /}\n" },
      [
        { hosts: ["a.test"], path: null, port: 80 },
        { hosts: ["a.test"], path: "/x", port: 81, stripPath: true },
      ],
    ],
    [{ VIRTUAL_PORT: "80" }, []],
  ])("%j", (environment, sites) => {
    expect(nginxProxySites(environment as Record<string, string>)).toMatchObject(sites);
  });

  test("hosts without an equivalent are named", () => {
    const [site] = nginxProxySites({ VIRTUAL_HOST: "a.test,~^b\\d$,c.*" });
    expect(site?.hosts).toEqual(["a.test"]);
    expect(site?.problems).toHaveLength(2);
  });
});

describe("labels of caddy-docker-proxy", () => {
  const read = (labels: Record<string, string>) => caddyLabelSites(labels, { name: "web" });

  test.each([
    [
      { caddy: "a.test", "caddy.reverse_proxy": "{{upstreams 8080}}" },
      [{ hosts: ["a.test"], port: 8080, scheme: "http", https: true, lost: null }],
    ],
    [
      { caddy: "http://a.test, http://b.test", "caddy.reverse_proxy": "{{upstreams https 8443}}" },
      [{ hosts: ["a.test", "b.test"], port: 8443, scheme: "https", https: false }],
    ],
    [
      {
        caddy: "a.test",
        "caddy.handle_path": "/api/*",
        "caddy.handle_path.0_reverse_proxy": "{{upstreams 9000}}",
      },
      [{ path: "/api/", stripPath: true, port: 9000 }],
    ],
    [
      {
        caddy_0: "a.test",
        "caddy_0.reverse_proxy": "/x* {{upstreams}}",
        caddy_1: "b.test",
        "caddy_1.reverse_proxy": "other:81",
      },
      [
        { hosts: ["a.test"], path: "/x", port: null, address: null },
        { hosts: ["b.test"], address: "other", port: 81 },
      ],
    ],
    [
      { caddy: "a.test", "caddy.reverse_proxy": "{{upstreams}}", "caddy.forward_auth": "x" },
      [{ hosts: ["a.test"], lost: "forward_auth" }],
    ],
    [{ caddy: "a.test", "caddy.respond": "hello" }, [{ lost: "respond" }]],
    [
      { caddy: "a.test", "caddy.import": "auth", "caddy.reverse_proxy": "{{upstreams}}" },
      [{ lost: "import" }],
    ],
    [{ "other.label": "x" }, []],
  ])("%j", (labels, sites) => {
    expect(read(labels as Record<string, string>)).toMatchObject(sites);
  });

  test("users must authenticate, and a hash of another kind closes the site", () => {
    const labels = { caddy: "a.test", "caddy.reverse_proxy": "{{upstreams}}" };
    const hash = user.split(":")[1]?.replaceAll("$$", "$") ?? "";
    const [site] = read({ ...labels, "caddy.basic_auth.bob": hash });
    expect(site).toMatchObject({ users: [{ username: "bob", password_hash: hash }], lost: null });
    expect(read({ ...labels, "caddy.basic_auth.bob": "plain" })[0]?.lost).toContain("bob");
  });
});

test("every container is served or named", async () => {
  const { report, closed, routes } = await made({
    proxy: { image: "nginxproxy/nginx-proxy:latest" },
    blog: {
      environment: { VIRTUAL_HOST: "blog.test", VIRTUAL_PORT: 2368, LETSENCRYPT_HOST: "blog.test" },
      ports: ["8081:2368"],
    },
    inside: { environment: ["VIRTUAL_HOST=inside.test", "NETWORK_ACCESS=internal"] },
    shop: { labels: { caddy: "shop.test", "caddy.reverse_proxy": "{{upstreams 80}}" } },
    redis: { image: "redis" },
  });
  expect(closed).toEqual(["inside.test"]);
  expect(routes.map(({ hosts }) => hosts[0])).toEqual(["blog.test", "inside.test", "shop.test"]);
  const omitted = report.filter(({ level }) => level === "omitted").map(({ what }) => what);
  expect(omitted).toContain('container "proxy"');
  expect(omitted).toContain('container "redis"');
});
