// Broken and hostile files: they are rejected with the position of the error, or have no effect beyond their content.
import { describe, expect, test } from "bun:test";
import { importSources, MAX_SOURCE_BYTES } from "../../../src/import/programs.ts";
import { ApiError } from "../../../src/model/error.ts";
import { bytesOf, convertWith, npmDatabase } from "../../unit/import/samples.ts";

const kong = (rest: string) => `_format_version: "3.0"\n${rest}`;

test.each([
  ["kong", "", "must be an object", "an empty file"],
  ["kong", "[1, 2", "not valid JSON at line 1", "broken JSON"],
  ["kong", "a: [1\nb: 2", "not valid YAML", "broken YAML"],
  ["kong", "a: []", "_format_version: must be one of 1.1, 2.1, 3.0", "no version"],
  ["kong", "_format_version: 4.0", "_format_version: must be one of 1.1, 2.1, 3.0", "version"],
  [
    "kong",
    kong("services:\n  - name: a\n"),
    "services[0].host: is required (line 3, column ",
    "no host",
  ],
  [
    "kong",
    kong("services:\n  - host: a\n    routes:\n      - paths: /x\n"),
    "services[0].routes[0].paths: must be a list (line 5, column ",
    "no list",
  ],
  [
    "kong",
    kong("services:\n  - host: a\n    port: b\n"),
    "services[0].port: must be a number",
    "no number",
  ],
  ["kong", kong("plugins: [3]\n"), "plugins[0]: must be an object", "no object"],
  ["kong", kong("__proto__: { polluted: 1 }\n"), "__proto__: is not a known field", "pollution"],
  ["caddy", '{"apps": {"__proto__": {"polluted": 1}}}', "__proto__", "pollution in JSON"],
  ["caddy", "{}", "apps: is required", "no apps"],
  [
    "caddy",
    '{"apps": {"http": {"servers": []}}}',
    "apps.http.servers: must be an object",
    "a list",
  ],
  [
    "caddy",
    '{"apps": {\n"http": {"servers": {"a": {\n"routes": 3}}}}}',
    "apps.http.servers.a.routes: must be a list (line 3, column ",
    "no routes",
  ],
  ["caddy", `${"[".repeat(500)}`, "nested deeper than 64", "depth"],
  ["nginx", "", 'has no block "server"', "an empty file"],
  ["nginx", "server {\n  listen", "unexpected end of file", "a truncated one"],
  ["nginx", `${"a {".repeat(100_000)}`, "nested deeper than 64", "depth"],
  ["nginx", `${"a;".repeat(1_000_001)}`, "more than 1000000 directives", "many directives"],
  ["nginx", "server { __proto__ {} } }", 'unexpected "}"', "a brace too many"],
  ["traefik", "", "has no configuration of Traefik", "an empty file"],
  ["traefik", "services: {}", "has no configuration of Traefik", "another file"],
  ["traefik", "[http\n", "not valid", "broken TOML"],
  ["traefik", "a = \n", "not valid TOML", "broken TOML in its first line"],
  [
    "traefik",
    "http:\n  routers:\n    a: 3\n",
    "http.routers.a: must be an object (line 3, column ",
    "a",
  ],
  ["traefik", "http:\n  __proto__: { polluted: 1 }\n", "__proto__", "pollution"],
  ["haproxy", "", "has no frontend", "an empty file"],
  ["haproxy", "bind :80\n", "bind: is not a section of HAProxy (line 1)", "no section"],
  ["haproxy", "frontend a\n  acl b path 'x\n", "is not closed (line 2)", "a quotation mark"],
  ["compose", "a: b", "services: is required", "no services"],
  ["compose", "services:\n  a: 3\n", "services.a: must be an object (line 2, column ", "no object"],
  ["npm", "hello", "no SQLite database", "no database"],
  ["npm", `SQLite format 3\0${"x".repeat(200)}`, "cannot be read", "a damaged one"],
] as const)("%s: %j is rejected with %j: %s", async (from, source, says) => {
  const failure = await convertWith(from, bytesOf(source)).catch((error: Error) => error);
  expect(failure).toBeInstanceOf(Error);
  expect((failure as Error).message).toContain(says);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});

test.each([...importSources])("%s: a file that is too large is not parsed", async (from) => {
  const failure = await convertWith(from, new Uint8Array(MAX_SOURCE_BYTES + 1)).catch((e) => e);
  expect(failure.message).toContain("larger than");
});

test("npm: a mistake in a column is named with table and row", async () => {
  const broken = npmDatabase("UPDATE proxy_host SET locations = '[{' WHERE id = 1");
  await expect(convertWith("npm", broken)).rejects.toThrow(
    /^proxy_host\[0\]\.locations: it is not valid JSON/,
  );
});

test("npm: an endless view in place of a table does not run", async () => {
  const endless = npmDatabase(
    "DROP TABLE dead_host",
    "CREATE VIEW dead_host AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
  );
  const { document } = await convertWith("npm", endless);
  expect(document.routes.length).toBeGreaterThan(3);
});

test("names such as __proto__ are ordinary names", async () => {
  const source = kong(
    "services:\n  - { name: constructor, host: toString }\nroutes:\n  - { name: hasOwnProperty, service: constructor, paths: [/a] }\nplugins:\n  - { name: constructor, route: hasOwnProperty }\nconsumers: [{ username: toString }]\n",
  );
  const { document, report } = await convertWith("kong", source);
  expect(document.services[0].name).toBe("constructor");
  expect(document.routes[0]).toMatchObject({ name: "hasOwnProperty", maintenance: {} });
  expect(report).toContainEqual(
    expect.objectContaining({
      level: "omitted",
      what: 'plugin "constructor" of route "hasOwnProperty"',
    }),
  );
});

test("texts of the source do not become variables of templates", async () => {
  const to = "https://a.test/${env.SLUICE_ENV_SECRET}";
  const { document } = await convertWith(
    "kong",
    kong(`plugins:\n  - name: redirect\n    config: { location: "${to}" }\n`),
  );
  expect(document.plugins[0].config.to).not.toContain("${");
});

describe("nginx", () => {
  const sample = `http { upstream a { server b:1; } map $x $y { default 1; }
    server { listen 80; server_name a.test *.b.test; location ~ ^/x(y|z)+$ { proxy_pass http://a; }
      location /c { rewrite ^/c/(.*)$ /$1 break; allow 10.0.0.0/8; deny all; proxy_pass http://a; }
      if ($host = a.test) { return 301 https://$host$request_uri; } } }
    stream { server { listen 22; proxy_pass c:22; } }`;

  /** A conversion or a rejection, never another failure; and nothing that is denied is open. */
  async function survives(text: string) {
    try {
      const { document } = await convertWith("nginx", text);
      expect(document.format).toBe(1);
    } catch (error) {
      expect(error).toBeInstanceOf(ApiError);
    }
  }

  test("every beginning of a file is rejected or converted", async () => {
    for (let end = 0; end <= sample.length; end += 3) await survives(sample.slice(0, end));
  });

  test("files with random changes are rejected or converted", async () => {
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    const pieces = [
      "{",
      "}",
      ";",
      '"',
      "'",
      "\\",
      "$",
      "${",
      "#",
      "~ ",
      "= ",
      "(",
      "[",
      "\n",
      " ",
      "\0",
      "é",
      "//",
      "*",
    ];
    for (let round = 0; round < 150; round++) {
      const characters = [...sample];
      for (let change = 0; change <= random(4); change++)
        characters[random(characters.length)] = pieces[random(pieces.length)] ?? "";
      await survives(characters.join(""));
    }
  });

  test("names such as __proto__ are ordinary names", async () => {
    const { document } = await convertWith(
      "nginx",
      "upstream constructor { server toString; } server { server_name __proto__.test; location /__proto__ { proxy_pass http://constructor; proxy_set_header __proto__ x; } }",
    );
    expect(document.services[0].name).toBe("constructor");
    expect(({} as { x?: string }).x).toBeUndefined();
  });

  test("the API names no file that is read", async () => {
    const { document, report } = await convertWith(
      "nginx",
      "include /etc/passwd; server { listen 443 ssl; server_name a.test; ssl_certificate /etc/passwd; ssl_certificate_key /etc/passwd; location / { auth_basic x; auth_basic_user_file /etc/passwd; proxy_pass http://10.0.0.1; } }",
    );
    expect(document.certificates).toBeUndefined();
    expect(document.routes[0].maintenance).toEqual({});
    expect(JSON.stringify([document, report])).not.toContain("root:");
  });

  test("a long file is read in a time that grows with its length", async () => {
    const words = `a ${"b ".repeat(500_000)}; ${"# x\n".repeat(200_000)} server { return 204; }`;
    const { document } = await convertWith("nginx", words);
    expect(document.routes).toHaveLength(1);
  });
});

test("a configuration of Caddy names no file that is read", async () => {
  const source = {
    apps: {
      tls: { certificates: { load_files: [{ certificate: "/etc/passwd", key: "/etc/passwd" }] } },
    },
  };
  const { document, report } = await convertWith("caddy", source);
  expect(document).toEqual({ format: 1 });
  expect(JSON.stringify(report)).toContain("files are not read");
});
