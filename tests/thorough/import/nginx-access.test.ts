// What authenticates clients of nginx, its streams, and configurations as people have them.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isClosed, made, madeWith, site } from "../../unit/import/nginx-samples.ts";
import type { Anything } from "../../unit/import/samples.ts";

describe("authorization servers", () => {
  const asking = (location: string, path = "/auth") =>
    site(`location / { auth_request ${path}; proxy_pass http://10.0.0.1; } ${location}`);

  test.each([
    [
      "location = /auth { proxy_pass http://sso:9091/api/verify; proxy_set_header X-Original-URL $uri; }",
      "/auth",
      "http://sso:9091/api/verify",
    ],
    [
      "location /in/ { internal; proxy_pass http://sso:4180/; }",
      "/in/oauth2/auth",
      "http://sso:4180/oauth2/auth",
    ],
    ["location /in { proxy_pass http://sso; }", "/in/check", "http://sso:80/in/check"],
    ["location = /auth { proxy_pass http://sso/validate?x; }", "/auth", null],
    [
      "location = /auth { proxy_pass http://sso/check; proxy_set_header X-Original-URI $request_uri; }",
      "/auth",
      null,
    ],
    ["location ~ /auth { proxy_pass http://sso; }", "/auth", "http://sso:80/auth"],
    ["location = /auth { rewrite ^ /x break; proxy_pass http://sso; }", "/auth", null],
    ["location = /auth { return 200; }", "/auth", null],
  ])("%s", async (location, path, url) => {
    const { route, pluginsOf } = await asking(location, path);
    expect(isClosed(route("a.test"))).toBe(url === null);
    if (url !== null)
      expect(pluginsOf("a.test")["forward-auth"].url.replace("sso/", "sso:80/")).toBe(url);
  });
});

test("a server for several hosts is asked for the right one, or not at all", async () => {
  const { route } = await site(
    "location / { auth_request /auth; proxy_pass http://10.0.0.1; } location = /auth { proxy_pass http://10.0.0.5/verify; proxy_set_header Host auth.test; }",
  );
  expect(isClosed(route("a.test"))).toBe(true);
});

test("a named location behind try_files keeps its own protections", async () => {
  const app = (lines: string) =>
    site(
      `location / { try_files $uri @app; } location @app { ${lines} proxy_pass http://10.0.0.1; }`,
    );
  expect(isClosed((await app("")).route("a.test"))).toBe(false);
  expect(isClosed((await app("modsecurity on;")).route("a.test"))).toBe(true);
  expect(isClosed((await app("allow 10.0.0.1; deny all;")).route("a.test"))).toBe(true);
});

test("a text behind an unknown condition is closed", async () => {
  const { route } = await site(
    "if ($arg_x != y) { return 403; } location / { return 200 secret; }",
  );
  expect(isClosed(route("a.test"))).toBe(true);
});

describe("passwords and certificates in files", () => {
  const conf = (more: string) =>
    `server { listen 80; server_name a.test; location / { auth_basic x; auth_basic_user_file users; proxy_pass http://10.0.0.1; } } ${more}`;
  const bcrypt = "$2y$05$MhkTtlyhT7jGs040w89tq.moFGeyONR4LfL4X3wzJe7AffwYOLTo6";

  test("supported hashes become users, the others are named", async () => {
    const md5 = "$apr1$x$yyyyyyyyyyyyyyyyyyyyyy";
    const users = `a:${bcrypt}\n# no\nb:$apr1$x$y\nb:${bcrypt}\nc:{PLAIN}secret\na:other\nd:${md5}\ne:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n`;
    const { pluginsOf, says, route } = await madeWith({ "nginx.conf": conf(""), users });
    const names = pluginsOf("a.test")["basic-auth"].users.map((user: Anything) => user.username);
    expect([names, isClosed(route("a.test"))]).toEqual([["a", "c", "d", "e"], false]);
    expect(says).toContain('user \\"b\\"');
    expect(says).toContain("its password must be a hash of");
  });

  test.each([["b:$apr1$x$y\n"], [""], ["a::\n:b\n"]])(
    "a file without usable users closes the route: %j",
    async (users) => {
      const { route } = await madeWith({ "nginx.conf": conf(""), users });
      expect(isClosed(route("a.test"))).toBe(true);
    },
  );
});

describe("streams", () => {
  test("become disabled stream routes", async () => {
    const { document } = await made(`stream {
      map $ssl_preread_server_name $to { a.test one:1; default two:2; }
      server { listen 443; ssl_preread on; proxy_pass $to; }
      server { listen 53 udp; proxy_pass dns:53; }
      server { listen 22; allow 10.0.0.0/8; deny all; proxy_pass git:22; }
      server { listen 23; deny 10.0.0.1; allow 10.0.0.0/8; deny all; proxy_pass git:22; } }`);
    expect(document.stream_routes).toMatchObject([
      { listen_port: 443, sni: ["a.test"], tls_mode: "passthrough", enabled: false },
      { listen_port: 443, tls_mode: "none", enabled: false },
      { listen_port: 53, protocol: "udp" },
      { listen_port: 22, allow: ["10.0.0.0/8"] },
      { listen_port: 23 },
    ]);
  });
});

describe("real configurations", () => {
  const folder = join(import.meta.dir, "../../fixtures/import/nginx");
  const files = readdirSync(folder);

  test("there are enough", () => expect(files.length).toBeGreaterThanOrEqual(15));

  test.each(files)("%s: every host is served or named", async (file) => {
    const text = readFileSync(join(folder, file), "utf8");
    const { document, says } = await made(text);
    const routes = JSON.stringify([document.routes, document.stream_routes]).toLowerCase();
    const names = [...text.matchAll(/^[^#\n]*\bserver_name\s+([^;]+);/gm)].flatMap(
      ([, list = ""]) => list.split(/\s+/).map((name) => name.replaceAll('"', "")),
    );
    const isFound = (name: string) => {
      if (name === "" || name === "_") return true;
      const [, start] = /^(.+)\.\*$/.exec(name) ?? [];
      if (start !== undefined) return routes.includes(`"${start}.any`);
      if (name.startsWith("~")) return routes.includes('"name":"host","op":"regex"');
      return routes.includes(`"${name.replace(/^\./, "").toLowerCase()}"`) || says.includes(name);
    };
    expect(names.filter((name) => !isFound(name))).toEqual([]);
    // Nothing that the source protects is without its protection.
    expect(says).not.toContain("the gateway rejects it");
    expect(says).not.toContain("/work/");
  });
});
