// Whole set-ups: what one file protects in another one stays protected, and what is missing closes the routes that name it.
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { treeOf } from "../../../src/import/set-up/tree.ts";
import type { ImportChoice } from "../../../src/import/programs.ts";
import { npmDatabase, type Anything, bytesOf, convertTree } from "./samples.ts";

async function made(from: ImportChoice, files: Readonly<Record<string, string | Uint8Array>>) {
  const tree = treeOf(
    new Map(
      Object.entries(files).map(([path, content]) => [
        path,
        typeof content === "string" ? bytesOf(content) : content,
      ]),
    ),
  );
  const { document, report } = await convertTree(from, tree);
  const routes: readonly Anything[] = document.routes ?? [];
  const named = (name: string) => routes.find((route) => route.name === name);
  const pluginsOf = (name: string): readonly string[] =>
    (document.plugins ?? [])
      .filter(({ route_id: id }: Anything) => id === named(name)?.id)
      .map((plugin: Anything) => plugin.name)
      .toSorted();
  const isClosed = (name: string) => named(name)?.maintenance !== undefined;
  return { document, routes, named, pluginsOf, isClosed, report, says: JSON.stringify(report) };
}

const hash = "$2b$05$MhkTtlyhT7jGs040w89tq.moFGeyONR4LfL4X3wzJe7AffwYOLTo6";

describe("Traefik", () => {
  const entryPoints = `
entryPoints:
  web: { address: ":80", http: { redirections: { entryPoint: { to: websecure, scheme: https } } } }
  websecure:
    address: ":443"
    http: { tls: {}, middlewares: ["auth@file"] }
providers: { file: { directory: /etc/traefik/dynamic } }
`;
  const router = `
http:
  routers:
    shop: { rule: "Host(\`shop.test\`)", entryPoints: [websecure], service: shop }
  services:
    shop: { loadBalancer: { servers: [{ url: "http://127.0.0.1:81" }] } }
`;
  const auth = `http: { middlewares: { auth: { basicAuth: { users: ["a:${hash}"] } } } }`;

  test("middlewares of an entry point protect the routers of other files", async () => {
    const files = { "traefik.yml": entryPoints, "dynamic/a.yml": router, "dynamic/b.yml": auth };
    for (const from of ["traefik", "auto"] as const) {
      const { pluginsOf, isClosed, says } = await made(from, files);
      expect(isClosed("shop")).toBe(false);
      expect(pluginsOf("shop")).toContain("basic-auth");
      expect(says).not.toContain("static configuration is not in the files");
    }
  });

  test("a middleware of an entry point that is in no file closes its routers", async () => {
    const { isClosed, says } = await made("traefik", {
      "traefik.yml": entryPoints,
      "dynamic/a.yml": router,
    });
    expect(isClosed("shop")).toBe(true);
    expect(says).toContain('middleware \\"auth\\"');
  });

  test("without the static file the routers are served, and the report says what is missing", async () => {
    const { isClosed, report } = await made("traefik", { "a.yml": router });
    expect(isClosed("shop")).toBe(false);
    expect(report).toContainEqual({
      level: "changed",
      what: "entry points websecure",
      why: expect.stringContaining("static configuration is not in the files"),
    });
  });

  test("chains across files are resolved", async () => {
    const chain = `
http:
  middlewares:
    chain-auth: { chain: { middlewares: ["auth@file", "limit@file"] } }
    limit: { rateLimit: { average: 10, burst: 10 } }
`;
    const { pluginsOf } = await made("traefik", {
      "rules/app.yml": router.replace(
        "service: shop }",
        'service: shop, middlewares: ["chain-auth@file"] }',
      ),
      "rules/chains.yml": chain,
      "rules/auth.toml": `[http.middlewares.auth.basicAuth]\nusers = ["a:${hash}"]\n`,
    });
    expect(pluginsOf("shop")).toEqual(expect.arrayContaining(["basic-auth", "rate-limit"]));
  });

  test("two definitions of one name close what may use them", async () => {
    const { isClosed, says } = await made("traefik", {
      "a.yml": router.replace("service: shop }", 'service: shop, middlewares: ["auth"] }'),
      "b.yml": auth,
      "c.yml": auth.replace("a:", "b:"),
    });
    expect(isClosed("shop")).toBe(true);
    expect(says).toContain("http.middlewares.auth");
  });

  test("a Go template is named, and what it may define is closed", async () => {
    const { isClosed, report } = await made("traefik", {
      "a.yml": router.replace("service: shop }", 'service: shop, middlewares: ["auth"] }'),
      "b.yml":
        "http:\n  middlewares:\n  {{ range $i, $e := until 3 }}\n    auth: {}\n  {{ end }}\n",
    });
    expect(isClosed("shop")).toBe(true);
    expect(report.find(({ what }) => what === "b.yml")?.why).toContain("is a Go template");
  });

  test("variables of Go templates are those of .env, and others are named", async () => {
    const file = router.replace("shop.test", '{{ env "DOMAIN" }}');
    const filled = await made("traefik", { "a.yml": file, ".env": "DOMAIN=shop.example\n" });
    expect(filled.named("shop")?.hosts).toEqual(["shop.example"]);
    const { routes, report } = await made("traefik", { "a.yml": file });
    expect(routes).toEqual([]);
    expect(report.find(({ what }) => what === '{{ env "DOMAIN" }} in a.yml')?.why).toContain(
      "write the value of DOMAIN",
    );
    const users = router.replace("service: shop }", "service: shop, middlewares: [auth] }");
    const secret = `${users}  middlewares: { auth: { basicAuth: { users: ['{{ env "USERS" }}'] } } }\n`;
    expect((await made("traefik", { "a.yml": secret })).isClosed("shop")).toBe(true);
  });

  test("users of a file are read, and without it the routers are closed", async () => {
    const guarded = router.replace("service: shop }", "service: shop, middlewares: [auth] }");
    const file = "http: { middlewares: { auth: { basicAuth: { usersFile: /shared/.htpasswd } } } }";
    const files = { "a.yml": guarded, "b.yml": file };
    const read = await made("traefik", { ...files, "shared/.htpasswd": `# x\na:${hash}\n` });
    expect([read.isClosed("shop"), read.pluginsOf("shop")]).toEqual([false, ["basic-auth"]]);
    expect((await made("traefik", files)).isClosed("shop")).toBe(true);
    const twice = { "one/.htpasswd": `a:${hash}`, "two/.htpasswd": `b:${hash}` };
    expect((await made("traefik", { ...files, ...twice })).isClosed("shop")).toBe(true);
  });

  test("two static configurations are refused", async () => {
    const both = made("traefik", { "a/traefik.yml": entryPoints, "b/traefik.yml": entryPoints });
    expect(await both.catch(({ message }: Error) => message)).toBe(
      "a/traefik.yml and b/traefik.yml are both static configurations of Traefik: import a folder with one of them",
    );
  });

  test("an invalid file is named", async () => {
    const broken = made("traefik", { "a.yml": router, "b.yml": "http: [" });
    expect(await broken.catch(({ message }: Error) => message)).toStartWith("b.yml: ");
  });
});

describe("Docker Compose", () => {
  const labels = (name: string, more = "") => `
    image: app
    expose: ["81"]
    labels:
      traefik.enable: "true"
      traefik.http.routers.${name}.rule: "Host(\`${name}.test\`)"
      traefik.http.routers.${name}.entrypoints: websecure
${more}`;
  const traefik = (volumes: string, more = "") => `
  traefik:
    image: traefik:v3
    volumes: [${volumes}]
${more}`;
  const fixed = `
entryPoints:
  websecure: { address: ":443", http: { tls: {}, middlewares: ["auth@file"] } }
providers: { file: { directory: /dynamic }, docker: { exposedByDefault: false } }
`;
  const auth = `http: { middlewares: { auth: { basicAuth: { users: ["a:${hash}"] } } } }`;
  const mounted = '"./traefik.yml:/etc/traefik/traefik.yml:ro", "./dynamic:/dynamic"';

  test("a mounted traefik.yml and its files protect the containers", async () => {
    const { pluginsOf, isClosed } = await made("compose", {
      "compose.yml": `services:${traefik(mounted)}  shop:${labels("shop")}`,
      "traefik.yml": fixed,
      "dynamic/auth.yml": auth,
    });
    expect(isClosed("shop")).toBe(false);
    expect(pluginsOf("shop")).toContain("basic-auth");
  });

  test.each([
    ["the mounted static file is missing", { "dynamic/auth.yml": auth }, mounted],
    ["the mounted folder is missing", { "traefik.yml": fixed }, mounted],
    ["a volume holds the static file", { "dynamic/auth.yml": auth }, '"conf:/etc/traefik"'],
    ["it is outside of the folder", { "traefik.yml": fixed }, '"../traefik.yml:/traefik.yml"'],
  ])("%s: the routers are closed and named", async (_, files, volumes) => {
    const { isClosed, says } = await made("compose", {
      "compose.yml": `services:${traefik(volumes)}  shop:${labels("shop")}`,
      ...files,
    });
    expect(isClosed("shop")).toBe(true);
    expect(says).toContain("is not in the files, and may deny access");
  });

  test("flags name the files, and variables are those of Traefik", async () => {
    const command = `    command: ["--configFile=/conf/t.yml"]\n`;
    const files = { "conf/t.yml": fixed, "dynamic/auth.yml": auth };
    const { pluginsOf } = await made("compose", {
      "compose.yml": `services:${traefik('"./conf:/conf", "./dynamic:/dynamic"', command)}  shop:${labels("shop")}`,
      ...files,
    });
    expect(pluginsOf("shop")).toContain("basic-auth");
    const environment = `    environment:
      TRAEFIK_ENTRYPOINTS_WEBSECURE_ADDRESS: ":443"
      TRAEFIK_ENTRYPOINTS_WEBSECURE_HTTP_MIDDLEWARES: auth@file
`;
    const { isClosed } = await made("compose", {
      "compose.yml": `services:${traefik('"./dynamic:/dynamic"', environment)}  shop:${labels("shop")}`,
    });
    expect(isClosed("shop")).toBe(true);
  });

  test("a mounted file of users is read", async () => {
    const users =
      "      traefik.http.middlewares.users.basicauth.usersfile: /users\n      traefik.http.routers.shop.middlewares: users\n";
    const compose = `services:${traefik('"./users:/users"')}  shop:${labels("shop", users)}`;
    const { pluginsOf, isClosed } = await made("compose", {
      "compose.yml": compose,
      users: `a:${hash}\n`,
    });
    expect([isClosed("shop"), pluginsOf("shop")]).toEqual([false, ["basic-auth"]]);
    expect((await made("compose", { "compose.yml": compose })).isClosed("shop")).toBe(true);
  });

  test("a config with content is a file", async () => {
    const compose = `
configs:
  static: { content: "entryPoints: { websecure: { address: ':443', http: { tls: {}, middlewares: [nobody@file] } } }" }
services:
  traefik: { image: "traefik:v3", configs: [{ source: static, target: /etc/traefik/traefik.yml }] }
  shop:${labels("shop")}`;
    expect((await made("compose", { "compose.yml": compose })).isClosed("shop")).toBe(true);
  });

  test("variables, overrides, included and extended files are read", async () => {
    const { named, document, isClosed } = await made("auto", {
      ".env": "DOMAIN=shop.example\nPORT='8081'\n# a comment\n",
      "compose.yml": `
include: [other/compose.yml]
services:
  shop:
    extends: { file: base.yml, service: web }
    ports: ["\${PORT}:80"]
    labels: ["traefik.http.routers.shop.rule=Host(\`\${DOMAIN}\`)"]
`,
      "base.yml": 'services: { web: { image: app, labels: ["traefik.enable=true"] } }',
      "compose.override.yml":
        'services:\n  shop:\n    labels: ["traefik.http.routers.shop.middlewares=a", "traefik.http.middlewares.a.ipallowlist.sourcerange=10.0.0.0/8"]\n',
      "other/compose.yml": `services:\n  blog:${labels("blog")}`,
    });
    expect(named("shop")?.hosts).toEqual(["shop.example"]);
    expect(document.targets.map(({ host, port }: Anything) => `${host}:${port}`)).toContain(
      "127.0.0.1:8081",
    );
    expect(isClosed("shop")).toBe(false);
    expect(document.plugins.map(({ name }: Anything) => name)).toContain("ip-restriction");
    expect(named("blog")?.hosts).toEqual(["blog.test"]);
  });

  test("a file that a service extends and that is missing closes its routers", async () => {
    const { isClosed, says } = await made("compose", {
      "compose.yml": `services:\n  shop:${labels("shop", "    extends: { file: base.yml, service: web }\n")}`,
    });
    expect(isClosed("shop")).toBe(true);
    expect(says).toContain("extends base.yml web");
  });

  test("the projects of several folders are one set-up", async () => {
    const { named, isClosed, pluginsOf } = await made("compose", {
      "traefik/compose.yml": `services:${traefik(mounted)}`,
      "traefik/traefik.yml": fixed,
      "traefik/dynamic/auth.yml": auth,
      "shop/docker-compose.yml": `services:\n  shop:${labels("shop")}`,
      "blog/docker-compose.yml": `services:\n  blog:${labels("blog")}`,
    });
    expect(named("blog")).toBeDefined();
    expect(isClosed("shop")).toBe(false);
    expect(pluginsOf("shop")).toContain("basic-auth");
  });

  describe("nginx-proxy", () => {
    const site = (volumes: string, more = "") => `
services:
  proxy: { image: nginxproxy/nginx-proxy, volumes: [${volumes}] }
  web: { image: app, environment: { VIRTUAL_HOST: a.test${more} } }
  other: { image: app, environment: { VIRTUAL_HOST: b.test } }
`;
    const folders = '"./htpasswd:/etc/nginx/htpasswd", "./vhost.d:/etc/nginx/vhost.d"';
    const usual = { "vhost.d/default": "client_max_body_size 10m;\n" };

    test("htpasswd asks for its passwords", async () => {
      const { pluginsOf, isClosed } = await made("compose", {
        "compose.yml": site(folders),
        "htpasswd/a.test": `alice:${hash}\n`,
        ...usual,
      });
      expect(pluginsOf("a.test")).toContain("basic-auth");
      expect(pluginsOf("b.test")).not.toContain("basic-auth");
      expect([isClosed("a.test"), isClosed("b.test")]).toEqual([false, false]);
    });

    test("that of a path applies to the path", async () => {
      const path = createHash("sha1").update("/x").digest("hex");
      const { pluginsOf } = await made("compose", {
        "compose.yml": site(folders, ", VIRTUAL_PATH: /x"),
        [`htpasswd/a.test_${path}`]: `alice:${hash}\n`,
        ...usual,
      });
      expect(pluginsOf("a.test-x")).toContain("basic-auth");
    });

    test.each([
      ["deny all;", "deny at vhost.d/a.test:1"],
      ["# x\nauth_request /auth;", "auth_request at vhost.d/a.test:2"],
      ["location /admin { return 403; }", "location at vhost.d/a.test:1"],
    ])("vhost.d with %j closes its host with the line", async (content, says) => {
      const found = await made("compose", {
        "compose.yml": site(folders),
        "htpasswd/x": "x",
        "vhost.d/a.test": content,
        ...usual,
      });
      expect([found.isClosed("a.test"), found.isClosed("b.test")]).toEqual([true, false]);
      expect(found.says).toContain(says);
    });

    test.each([
      ["a folder that is missing", '"./htpasswd:/etc/nginx/htpasswd"'],
      ["a volume", '"passwords:/etc/nginx/htpasswd"'],
      ["conf.d", '"./conf:/etc/nginx/conf.d"'],
    ])("%s closes the hosts", async (_, volumes) => {
      const files = { "compose.yml": site(volumes), "conf/a.conf": "deny all;" };
      expect((await made("compose", files)).isClosed("a.test")).toBe(true);
    });

    test("the volume of acme-companion does not, and is named", async () => {
      const compose = `${site('"vhost:/etc/nginx/vhost.d"')}
  acme: { image: nginxproxy/acme-companion, volumes: ["vhost:/etc/nginx/vhost.d"] }
`;
      const { isClosed, says } = await made("compose", { "compose.yml": compose });
      expect(isClosed("a.test")).toBe(false);
      expect(says).toContain("the volume vhost is not in the files");
    });
  });
});

describe("nginx", () => {
  const main = "http { include /etc/nginx/conf.d/*.conf; include sites-enabled/*; }";
  const site =
    "server { listen 80; server_name a.test; location / { include snippets/auth.conf; proxy_pass http://127.0.0.1:81; } }";

  test("includes are read, relative to the main file and with the usual absolute paths", async () => {
    const { pluginsOf, isClosed } = await made("auto", {
      "etc/nginx/nginx.conf": main,
      "etc/nginx/conf.d/x.conf": "client_max_body_size 1m;",
      "etc/nginx/sites-enabled/a": site,
      "etc/nginx/snippets/auth.conf": "auth_basic x; auth_basic_user_file /etc/nginx/.htpasswd;",
      "etc/nginx/.htpasswd": `a:${hash}`,
    });
    expect(isClosed("a.test")).toBe(false);
    expect(pluginsOf("a.test")).toContain("basic-auth");
  });

  test("one that is missing closes the routes in its scope", async () => {
    const { isClosed, says } = await made("nginx", {
      "nginx.conf": main,
      "conf.d/x.conf": "",
      "sites-enabled/a": site,
    });
    expect(isClosed("a.test")).toBe(true);
    expect(says).toContain("include snippets/auth.conf at sites-enabled/a:1");
  });

  test("a folder without nginx.conf is that of its sites", async () => {
    const { named } = await made("nginx", {
      "conf.d/a.conf":
        "server { listen 80; server_name a.test; location / { proxy_pass http://127.0.0.1:81; } }",
      "conf.d/b.conf":
        "server { listen 80; server_name b.test; location / { proxy_pass http://127.0.0.1:81; } }",
    });
    expect([named("a.test"), named("b.test")]).toEqual([
      expect.objectContaining({ hosts: ["a.test"] }),
      expect.objectContaining({ hosts: ["b.test"] }),
    ]);
  });
});

test("files of decK are one configuration", async () => {
  const { document, says } = await made("auto", {
    "services.yaml":
      '_format_version: "3.0"\nservices: [{ name: a, host: a.test, routes: [{ name: r, paths: [/x] }] }]',
    "plugins.yaml": '_format_version: "3.0"\nplugins: [{ name: key-auth, route: r }]',
    "README.yaml": "title: x",
  });
  expect(document.plugins).toMatchObject([{ name: "key-auth", route_id: document.routes[0].id }]);
  expect(says).toContain("README.yaml");
});

test("the file of Compose that a gateway runs by is none of its configuration", async () => {
  const { named } = await made("auto", {
    "compose.yml": "services: { nginx: { image: nginx } }",
    "nginx.conf":
      "http { server { listen 80; server_name a.test; location / { proxy_pass http://127.0.0.1:81; } } }",
  });
  expect(named("a.test")).toBeDefined();
});

test("files of other programs are named, and do not need to be readable", async () => {
  const files = {
    "a.yml":
      "http: { routers: { r: { rule: 'Host(`a.test`)', service: s } }, services: { s: { loadBalancer: { servers: [{ url: 'http://b' }] } } } }",
    "chart.yaml": "image: {{ .Values.image }}\n- x",
    "many.yaml": "a: 1\n---\nb: 2\n",
  };
  const { named, report } = await made("traefik", files);
  expect(named("r")).toBeDefined();
  for (const path of ["chart.yaml", "many.yaml"])
    expect(report.find(({ what }) => what === path)?.why).toBe("it is no configuration of Traefik");
});

test("numbers and flags of decK's environment get their defaults, and are named", async () => {
  const { document, says } = await made("kong", {
    "kong.yaml": `_format_version: "3.0"
services:
  - name: a
    host: a.test
    port: \${{ env "DECK_PORT" }}
    routes: [{ name: r, paths: [/x], strip_path: '\${{ env "DECK_STRIP" }}' }]
    plugins: [{ name: request-size-limiting, config: { allowed_payload_size: '\${{ env "DECK_SIZE" }}' } }]
`,
  });
  expect(document.targets).toMatchObject([{ host: "a.test", port: 80 }]);
  for (const name of ["PORT", "STRIP", "SIZE"]) expect(says).toContain(`the value of DECK_${name}`);
});

test("the folder of Nginx Proxy Manager has its certificates", async () => {
  const { routes } = await made("auto", { "npm/data/database.sqlite": npmDatabase() });
  expect(routes.length).toBeGreaterThan(3);
});

test.each([
  [{ "a.txt": "x" }, "the files hold no configuration that can be imported"],
  [
    { "compose.yml": "services: { a: { image: traefik } }", "nginx/nginx.conf": "http {}" },
    "the files hold configurations of nginx, compose",
  ],
])("%j: %s", async (files, says) => {
  expect(await made("auto", files).catch(({ message }: Error) => message)).toContain(says);
});
