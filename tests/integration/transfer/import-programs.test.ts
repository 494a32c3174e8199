// Configurations of other programs, imported into a running gateway by the command: requests go where they went before.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { selfSigned } from "../../support/certificate.ts";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { caddySample, kongSample, npmDatabase } from "../../unit/import/samples.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-import-"));

/** Says what reached it. */
const origin = (name: string) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname, search } = new URL(request.url);
      const { headers } = request;
      if (pathname === "/api/verify")
        return new Response("", {
          status: headers.get("authorization") === "Bearer right" ? 200 : 401,
          headers: { "Remote-User": "mum" },
        });
      const seen = { name, host: headers.get("host"), path: `${pathname}${search}` };
      const user = headers.get("remote-user") ?? headers.get("x-consumer-username");
      return Response.json({ ...seen, user, key: headers.get("x-shop-key") });
    },
  });
const origins = { 9001: origin("one"), 9002: origin("two"), 9003: origin("three") };

/** The sample with the ports of the servers that are there. */
const withPorts = (text: string) =>
  text.replaceAll(/\b900[123]\b/g, (port) =>
    String(origins[Number(port) as keyof typeof origins].port),
  );

function file(name: string, content: string | Uint8Array): string {
  const path = join(directory, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

afterAll(async () => {
  for (const server of Object.values(origins)) await server.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

function useImport(from: string, sourcePath: () => string) {
  let gateway: Gateway | null = null;
  const running = () => {
    if (gateway === null) throw new Error("not started");
    return gateway;
  };
  const run = (...more: string[]) =>
    runCommand(["import", "--from", from, sourcePath(), "--details", ...more], {
      env: { SLUICE_URL: running().admin },
    });
  beforeAll(async () => {
    gateway = await startGateway({ workers: 1 });
  });
  afterAll(() => gateway?.stop());
  const request = async (url: string, headers: Record<string, string> = {}) => {
    const { hostname, pathname, search, protocol } = new URL(url);
    const port = protocol === "https:" ? running().httpsPort : running().httpPort;
    const response = await fetch(`${protocol}//127.0.0.1:${port}${pathname}${search}`, {
      headers: { host: hostname, ...headers },
      redirect: "manual",
      tls: { rejectUnauthorized: false },
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") ?? false;
    return {
      status: response.status,
      location: response.headers.get("location"),
      hsts: response.headers.get("strict-transport-security"),
      body: isJson ? JSON.parse(text) : text,
    };
  };
  return { run, request, gateway: running };
}

describe("kong", () => {
  const { run, request, gateway } = useImport("kong", () =>
    file("kong.source", withPorts(Bun.YAML.stringify(kongSample(), null, 2))),
  );

  test("a dry run reports everything and changes nothing", async () => {
    const result = await run("--dry-run");
    expect([result.code, result.stderr]).toEqual([0, ""]);
    expect(result.stdout).toStartWith("Not imported:\n");
    expect(result.stdout).toContain("Imported with differences:\n");
    expect(result.stdout).toContain('  route "by-expression": ');
    expect(result.stdout).toContain('+ service "orders"\n');
    expect(await gateway().ok("GET", "/api/v1/services")).toEqual([]);
  });

  test("requests reach the same targets, with the same consumers", async () => {
    const result = await run();
    expect([result.code, result.stderr]).toEqual([0, ""]);
    const plain = await request("http://shop.test/orders/1");
    expect([plain.status, plain.location]).toEqual([301, "https://shop.test/orders/1"]);
    expect((await request("https://shop.test/orders/1")).status).toBe(401);
    const key = { "x-shop-key": "alice-has-a-long-key" };
    const seen = await request("https://shop.test/orders/1?x=1", key);
    expect(seen.body).toMatchObject({
      host: "orders.internal",
      path: "/internal/1?x=1",
      user: "alice",
      key: null,
    });
    // Of the limits of the route and of alice, hers goes before.
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => request("https://shop.test/orders/1", key)),
    );
    expect(answers.map(({ status }) => status)).toContain(429);
    // A longer prefix with fewer conditions is tried later, as Kong does.
    expect((await request("http://shop.test/orders/search")).status).toBe(301);
    const health = await request("http://health.test/health/x");
    expect(health.body).toMatchObject({ path: "/internal/x" });
    const number = await request("http://shop.test/o/7/y", {
      "x-version": "3",
      "x-client": "mobile-1",
    });
    expect(number.body).toMatchObject({ path: "/internal/y", host: "shop.test" });
    expect((await request("http://shop.test/o/7", { "x-client": "mobile-1" })).status).toBe(404);
  });

  test("routes that lost their protection are closed", async () => {
    await gateway().ok("PATCH", "/api/v1/services/legacy", { enabled: true });
    expect((await request("http://legacy.test/legacy")).status).toBe(503);
  });

  test("a repeated import creates nothing", async () => {
    const result = await run("--mode", "replace");
    expect([result.code, result.stderr]).toEqual([0, ""]);
    expect(result.stdout).not.toContain("\n+ ");
    expect(result.stdout).not.toContain("\n- ");
  });
});

describe("plugins of Kong that write logs", () => {
  const logs = [
    { name: "file-log", config: { path: "/var/log/kong.log" } },
    {
      name: "http-log",
      config: { http_endpoint: "https://logs.test/in", headers: { "X-Token": "abc" } },
    },
    { name: "tcp-log", config: { host: "logs.test", port: 5000 } },
    { name: "udp-log", config: { host: "2001:db8::7", port: 5001 } },
    { name: "file-log", service: "shop", config: { path: "/dev/stdout" } },
  ];
  const { run, gateway } = useImport("kong", () =>
    file(
      "logs.source",
      JSON.stringify({
        _format_version: "3.0",
        services: [{ name: "shop", url: "http://127.0.0.1:9001" }],
        plugins: logs.map((plugin, at) => ({ ...plugin, instance_name: `log-${at}` })),
      }),
    ),
  );

  test("write to the same places", async () => {
    const { code, stdout } = await run();
    expect([code, stdout.includes("has no field"), stdout.includes("does not take it")]).toEqual([
      ...[0, false, false],
    ]);
    const made = (await gateway().ok("GET", "/api/v1/plugins")) as unknown as {
      readonly name: string;
      readonly config: { readonly sinks: readonly object[] };
    }[];
    expect(made.map(({ name }) => name)).toEqual(logs.map(() => "access-log"));
    expect(made.flatMap(({ config }) => config.sinks)).toEqual(
      expect.arrayContaining([
        { file: expect.objectContaining({ path: "kong.log", format: "json" }) },
        { http: expect.objectContaining({ url: "https://logs.test/in" }) },
        { tcp: expect.objectContaining({ address: "logs.test:5000" }) },
        { udp: expect.objectContaining({ address: "[2001:db8::7]:5001" }) },
        { stdout: expect.objectContaining({ format: "json" }) },
      ]),
    );
  });
});

describe("npm", () => {
  const [tcpPort, udpPort] = [quietPort(), quietPort()];
  const holder = Bun.listen({ hostname: "0.0.0.0", port: udpPort, socket: { data() {} } });
  const { run, request, gateway } = useImport("npm", () => {
    file(
      "npm/data/database.sqlite",
      npmDatabase(
        ...Object.entries(origins).map(
          ([port, server]) =>
            `UPDATE proxy_host SET forward_port = ${server.port} WHERE forward_port = ${port}`,
        ),
        `UPDATE proxy_host SET locations = replace(locations, '9002', '${origins[9002].port}')`,
        "UPDATE proxy_host SET forward_scheme = 'http'",
        `UPDATE stream SET incoming_port = ${tcpPort}, forwarding_port = ${origins[9003].port}, udp_forwarding = 0`,
        `INSERT INTO stream VALUES (2, '', '', 1, 0, ${udpPort}, '127.0.0.1', 1, 1, 0, '{}', 1, 0)`,
      ),
    );
    return join(directory, "npm");
  });
  const addFiles = async (folder: string, ...names: string[]) => {
    const { cert, key } = await selfSigned(names[0], ...names.slice(1));
    file(`npm/${folder}/fullchain.pem`, cert);
    file(`npm/${folder}/privkey.pem`, key);
  };
  beforeAll(async () => {
    // As certbot writes them: links into its archive.
    await addFiles("letsencrypt/archive/npm-1", "photos.test", "www.photos.test");
    mkdirSync(join(directory, "npm/letsencrypt/live/npm-1"), { recursive: true });
    for (const name of ["fullchain.pem", "privkey.pem"])
      symlinkSync(
        `../../archive/npm-1/${name}`,
        join(directory, "npm/letsencrypt/live/npm-1", name),
      );
    await addFiles("data/custom_ssl/npm-3", "own.test");
  });
  afterAll(() => holder.stop(true));

  test("the report has each cause once", async () => {
    const { code, stdout } = await run("--dry-run");
    expect(code).toBe(0);
    expect(stdout).toContain(
      '  became an application:\n    proxy host "photos.test, www.photos.test"\n    proxy host "family.test"\n',
    );
    expect(stdout).toContain(
      `  stream route "stream-tcp-${udpPort}": is disabled, because of port`,
    );
    expect(stdout).toMatch(/\d+ created, 0 updated, 0 deleted\n$/);
  });

  test("each host is an application, and requests reach the same targets", async () => {
    const result = await run();
    expect([result.code, result.stderr]).toEqual([0, ""]);
    const applications = await gateway().ok("GET", "/api/v1/applications");
    expect(
      applications.map((each: Record<string, unknown>) => [each["name"], each["drift"]]).toSorted(),
    ).toEqual([
      ["family.test", []],
      ["lan.test", []],
      ["off.test", []],
      ["photos.test", []],
    ]);
    expect(await gateway().ok("GET", "/api/v1/applications/photos.test")).toMatchObject({
      upstream: `http://127.0.0.1:${origins[9001].port}`,
      https: { mode: "certificate", redirect: true },
      certificate: { name: "photos.test", status: "valid" },
      warnings: [],
    });
    const plain = await request("http://photos.test/a");
    expect([plain.status, plain.location]).toEqual([308, "https://photos.test/a"]);
    const photos = await request("https://www.photos.test/a?b=1");
    expect(photos.body).toMatchObject({ name: "one", host: "www.photos.test", path: "/a?b=1" });
    expect(photos.hsts).toBe("max-age=63072000; includeSubDomains; preload");
    const api = await request("https://photos.test/api/x");
    expect(api.body).toMatchObject({ name: "two", path: "/v2/x" });
    const old = await request("http://old.test/x?y=1");
    expect([old.status, old.location]).toEqual([301, "https://photos.test/x?y=1"]);
    expect((await request("http://gone.test/")).status).toBe(404);
    expect((await request("http://off.test/")).location).toBe("https://home.test/");
    expect((await request("http://deleted.test/")).location).toBe("https://home.test/");
  });

  test("access lists allow and deny as before", async () => {
    expect((await request("http://family.test/")).status).toBe(401);
    const login = (text: string) => ({ authorization: `Basic ${btoa(text)}` });
    expect((await request("http://family.test/", login("mum:wrong"))).status).toBe(401);
    const mum = await request("http://family.test/", login("mum:tea at five"));
    expect(mum.body).toMatchObject({ name: "one" });
    expect((await request("http://lan.test/")).body).toMatchObject({ name: "one" });
    // As nginx does, the gateway asks the target at /outpost, which allows the request.
    expect((await request("http://guarded.test/")).body).toMatchObject({ name: "one" });
  });

  test("streams listen, unless their port is in use", async () => {
    const seen = await fetch(`http://127.0.0.1:${tcpPort}/stream`);
    expect(await seen.json()).toMatchObject({ name: "three", path: "/stream" });
    const busy = await gateway().ok("GET", `/api/v1/stream-routes/stream-tcp-${udpPort}`);
    expect(busy.enabled).toBe(false);
  });

  test("certificates are served, and requested again after consent", async () => {
    const certificates = await gateway().ok("GET", "/api/v1/certificates");
    expect(
      certificates
        .map(({ name, source, status }: Record<string, unknown>) => [
          name,
          source,
          status === "valid",
        ])
        .toSorted(),
    ).toEqual([
      ["own", "upload", true],
      ["photos.test", "acme", true],
      ["wild", "acme", false],
    ]);
    expect(JSON.stringify(await gateway().ok("GET", "/api/v1/dns-providers"))).not.toContain(
      "0123456789abcdef",
    );
  });

  // Dry runs, because the gateway would turn to the CA.
  test("the same import again changes nothing but the hashes of passwords", async () => {
    const { code, stdout } = await run("--dry-run");
    expect(code).toBe(0);
    const kinds = stdout.split("\n").filter((line) => /^[+~-] /.test(line));
    expect(kinds.map((line) => line.split('"')[0])).toEqual(["~ plugin "]);
  });

  test("consent is given with the import, and kept", async () => {
    const given = await run("--agree-acme-terms", "--dry-run");
    expect(given.stdout).toContain("terms_agreed: false -> true");
    const [account] = await gateway().ok("GET", "/api/v1/acme/accounts");
    expect(account.terms_agreed).toBe(false);
    const fields = { enabled: false, terms_agreed: true };
    await gateway().ok("PATCH", `/api/v1/acme/accounts/${account.id}`, fields);
    const again = await run("--dry-run");
    expect([again.code, again.stdout.includes("terms_agreed:")]).toEqual([0, false]);
  });
});

describe("caddy", () => {
  const { run, request, gateway } = useImport("caddy", () =>
    file("caddy.source", withPorts(JSON.stringify(caddySample(), null, 1))),
  );

  test("requests reach the same targets", async () => {
    const result = await run();
    expect([result.code, result.stderr]).toEqual([0, ""]);
    const plain = await request("http://app.test/a");
    expect([plain.status, plain.location]).toEqual([308, "https://app.test/a"]);
    await eventually(async () => (await request("https://app.test/api/x")).status === 200);
    expect((await request("https://app.test/api/x?y=1")).body).toMatchObject({ path: "/x?y=1" });
    expect((await request("https://app.test/x")).body).toMatchObject({
      name: "one",
      host: "app.test",
      path: "/x",
    });
    const old = await request("https://www.app.test/older?x=1");
    expect([old.status, old.location]).toEqual([302, "https://new.test/older?x=1"]);
    expect((await request("https://app.test/admin/x")).status).toBe(401);
    expect((await request("https://app.test/internal/x")).status).toBe(200);
    expect((await request("http://http-only.test/")).body).toMatchObject({ name: "one" });
    const fixed = await request("https://plain.test/?v=2", { "x-a": "bcd" });
    expect([fixed.status, fixed.body]).toEqual([201, "hello"]);
    expect((await request("https://plain.test/?v=3", { "x-a": "bcd" })).status).toBe(404);
    expect((await request("https://secured.test/")).status).toBe(503);
  });

  test("another service authorizes first", async () => {
    expect((await request("https://sso.test/")).status).toBe(401);
    const seen = await request("https://sso.test/", { authorization: "Bearer right" });
    expect(seen.body).toMatchObject({ name: "one", user: "mum" });
  });

  test("other ports wait until they are free", async () => {
    const port = quietPort();
    const listener = await gateway().ok("GET", "/api/v1/listeners/caddy-18080");
    expect(listener).toMatchObject({ port: 18_080, enabled: false });
    await gateway().ok("PATCH", "/api/v1/listeners/caddy-18080", {
      enabled: true,
      port,
      address: "127.0.0.1",
    });
    const seen = await fetch(`http://127.0.0.1:${port}/z`);
    expect(await seen.json()).toMatchObject({ name: "two", path: "/z" });
    expect((await request("http://anything.test/z")).status).toBe(404);
  });
});

describe("the API", () => {
  const { gateway } = useImport("npm", () => file("empty", ""));
  const post = async (query: string, body: string | Uint8Array) => {
    const response = await fetch(`${gateway().admin}/api/v1/import?${query}`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: new Blob([typeof body === "string" ? body : new Uint8Array(body)]),
    });
    return { status: response.status, body: await response.json() };
  };

  test("converts as the command does, and responds with the report", async () => {
    const { status, body } = await post("from=npm&dry_run=1", npmDatabase());
    expect(status).toBe(200);
    expect(body.changes.length).toBeGreaterThan(10);
    expect(body.report).toContainEqual({
      level: "omitted",
      what: "audit log",
      why: "this gateway has its own audit log",
    });
    expect(await gateway().ok("GET", "/api/v1/services")).toEqual([]);
    const kong = await post("from=kong", "_format_version: '3.0'\nservices: [{ host: a.test }]\n");
    expect([kong.status, kong.body.changes.length]).toEqual([200, 2]);
    const { port } = origins[9001];
    const site = `server { listen 80; server_name n.test; location / { proxy_pass http://127.0.0.1:${port}; } }`;
    const nginx = await post("from=nginx", site);
    expect([nginx.status, nginx.body.report_groups.length > 0]).toEqual([200, true]);
    const response = await fetch(`http://127.0.0.1:${gateway().httpPort}/x`, {
      headers: { host: "n.test" },
    });
    expect(await response.json()).toMatchObject({ name: "one", path: "/x" });
  });

  test.each([
    ["from=zoraxy", "x", "from: must be kong or caddy or npm or "],
    ["from=nginx", "server {\n  listen 80\n}", "(line 3, column 1)"],
    ["from=npm", "x", "the file is no SQLite database"],
    ["from=caddy", '{"apps": 3}', "apps: must be an object (line 1, column 2)"],
    ["from=kong", "a: b", "_format_version: must be one of 1.1, 2.1, 3.0"],
  ])("refuses %s with the body %s", async (query, body, error) => {
    const answer = await post(query, body);
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(error)]);
  });
});

test("a broken file is refused with the line, before any request to a gateway", async () => {
  const path = file("broken.yaml", '_format_version: "3.0"\nservices:\n  - name: a\n');
  const result = await runCommand(["import", "--from", "kong", path]);
  expect([result.code, result.stdout]).toEqual([1, ""]);
  expect(result.stderr).toBe(`sluice: ${path}: services[0].host: is required (line 3, column 3)\n`);
});
