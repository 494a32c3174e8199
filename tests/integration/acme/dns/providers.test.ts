// DNS providers in the management API: write-only secrets, permissions, import and export, tests.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../../support/gateway.ts";
import { type DnsServer, startDnsServer } from "../../../support/dns-server.ts";
import { PASSWORD, ROOT } from "../../api/people.ts";

const SECRET = "canary-secret-of-a-dns-provider";
const PROGRAM = "/bin/true";

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  readonly body: any;
}
type Call = (line: string, body?: unknown) => Promise<Answer>;

let gateway: Gateway;
let names: DnsServer;
let hook: ReturnType<typeof Bun.serve>;
let hookSeen: string[] = [];
let root: Call;
let editor: Call;
let viewer: Call;

const caller =
  (cookie: string): Call =>
  async (line, body) => {
    const [method = "GET", path = ""] = line.split(/ (.*)/s);
    const response = await gateway.api(
      method,
      `/api/v1${path}`,
      body,
      cookie === "" ? {} : { cookie },
    );
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text) };
  };

async function signIn(email: string): Promise<Call> {
  const response = await gateway.api("POST", "/api/v1/auth/login", { email, password: PASSWORD });
  return caller((response.headers.get("set-cookie") ?? "").split(";")[0] ?? "");
}

beforeAll(async () => {
  hook = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      hookSeen.push(`${new URL(request.url).pathname} ${request.headers.get("authorization")}`);
      return new Response("ok");
    },
  });
  names = await startDnsServer();
  const programs = ["--dns-exec", PROGRAM, "--dns-exec=/bin/false"];
  gateway = await startGateway({ workers: 1, args: [...programs, "--dns-servers", names.address] });
  await caller("")("POST /users", ROOT);
  root = await signIn(ROOT.email);
  for (const role of ["editor", "viewer"])
    await root("POST /users", { email: `${role}@a.example`, name: role, role, password: PASSWORD });
  editor = await signIn("editor@a.example");
  viewer = await signIn("viewer@a.example");
});
afterAll(async () => {
  await gateway?.stop();
  await hook?.stop(true);
  names?.stop();
});

const webhook = (name: string, config: object = {}) => ({
  name,
  type: "webhook",
  propagation_timeout: 0,
  config: { url: `http://127.0.0.1:${hook.port}`, token: SECRET, ...config },
});

/** All that the database holds, as text. */
function stored(): string {
  const database = new Database(join(gateway.dataDir, "sluice.db"), { readonly: true });
  const rows = database.query("select * from dns_providers").all();
  database.close();
  return JSON.stringify(rows);
}

describe("secrets", () => {
  test("are stored encrypted and never read again, neither by an admin nor in an export", async () => {
    const { status, body } = await editor("POST /dns-providers", webhook("hidden"));
    expect([status, body.config]).toEqual([200, { url: `http://127.0.0.1:${hook.port}` }]);
    for (const line of [
      "GET /dns-providers",
      "GET /dns-providers/hidden",
      "GET /export",
      "GET /audit",
    ])
      expect(JSON.stringify((await root(line)).body)).not.toContain(SECRET);
    expect(stored()).not.toContain(SECRET);
    expect(stored()).toContain("sealed:1:");
  });

  test("persist when a write omits them, and null in a PATCH removes them", async () => {
    await editor("POST /dns-providers", webhook("kept"));
    const { body } = await editor("GET /dns-providers/kept");
    expect((await editor("PUT /dns-providers/kept", body)).status).toBe(200);
    await editor("PATCH /dns-providers/kept", { config: { username: "me" } });
    hookSeen = [];
    await editor("POST /dns-providers/kept/test", { zone: "example.com" });
    expect(hookSeen[0]).toBe(`/present Bearer ${SECRET}`);
    await editor("PATCH /dns-providers/kept", { config: { token: null } });
    hookSeen = [];
    await editor("POST /dns-providers/kept/test", { zone: "example.com" });
    expect(hookSeen[0]).toBe(`/present Basic ${btoa("me:")}`);
  });

  test("of another type are not reused", async () => {
    await editor("POST /dns-providers", webhook("changed"));
    const answer = await editor("PATCH /dns-providers/changed", {
      type: "gandi",
      config: { url: null, token: null },
    });
    expect(answer).toMatchObject({
      status: 400,
      body: { error: "config.access_token: is required" },
    });
  });

  test("may name a secret, which must exist", async () => {
    await root("POST /secrets", { name: "dns-token", value: SECRET });
    const body = webhook("named", { token: { $secret: "dns-token" } });
    const made = await root("POST /dns-providers", body);
    expect(made.body.config.token).toEqual({ $secret: "dns-token" });
    hookSeen = [];
    await editor("POST /dns-providers/named/test", { zone: "example.com" });
    expect(hookSeen).toEqual([`/present Bearer ${SECRET}`, `/cleanup Bearer ${SECRET}`]);
    const missing = await root(
      "POST /dns-providers",
      webhook("missing", { token: { $secret: "none" } }),
    );
    expect(missing.status).toBe(400);
    expect((await root("DELETE /secrets/dns-token")).status).toBe(409);
  });

  test("in an import are encrypted, and invalid ones are rejected", async () => {
    const import_ = (provider: object) =>
      root("POST /import", { format: 1, dns_providers: [provider] });
    const plain = { name: "imported", type: "gandi", config: { access_token: SECRET } };
    expect((await import_(plain)).status).toBe(200);
    expect(stored()).not.toContain(SECRET);
    const wrong = await import_({ name: "wrong", type: "gandi", config: { token: SECRET } });
    expect(wrong.status).toBe(400);
    expect(wrong.body.error).toContain("config.");
    expect(wrong.body.error).not.toContain(SECRET);
  });
});

describe("permissions", () => {
  const exec = (name: string, program = PROGRAM) => ({
    name,
    type: "exec",
    propagation_timeout: 0,
    config: { program },
  });

  test("let viewers read, but not write or test", async () => {
    expect((await viewer("GET /dns-providers")).status).toBe(200);
    expect((await viewer("GET /dns-providers/types")).body).toHaveLength(12);
    for (const line of ["POST /dns-providers", "POST /certificates/preflight"])
      expect((await viewer(line, webhook("no"))).status).toBe(403);
  });

  test("restrict programs to admins, before and after a change", async () => {
    expect((await editor("POST /dns-providers", exec("program"))).status).toBe(403);
    expect((await root("POST /dns-providers", exec("program"))).status).toBe(200);
    await editor("POST /dns-providers", webhook("plain"));
    const refused: [string, unknown?][] = [
      ["PATCH /dns-providers/program", { enabled: false }],
      ["PUT /dns-providers/program", webhook("program")],
      ["DELETE /dns-providers/program"],
      ["PATCH /dns-providers/plain", { ...exec("plain"), config: { url: null, program: PROGRAM } }],
      ["POST /dns-providers/program/test", { zone: "example.com" }],
    ];
    for (const [line, body] of refused)
      expect([line, (await editor(line, body)).status]).toEqual([line, 403]);
    const report = await root("POST /dns-providers/program/test", { zone: "example.com" });
    expect(report.body.checks.map(({ status }: { status: string }) => status)).toEqual([
      ...["ok", "ok", "warning", "ok"],
    ]);
    const preflight = { domains: ["a.example.com"], dns_provider_id: "program" };
    const { body } = await editor("POST /certificates/preflight", preflight);
    expect(body.checks.find(({ name }: { name: string }) => name === "zone")).toMatchObject({
      status: "warning",
      message: expect.stringContaining("only an admin"),
    });
  });

  test("deny unlisted programs to admins too", async () => {
    const { status, body } = await root("POST /dns-providers", exec("other", "/bin/sh"));
    expect([status, body.error]).toEqual([
      400,
      "config.program: must be a program that the gateway was started with: --dns-exec PATH",
    ]);
  });
});

test.each([
  {
    why: "an unknown field",
    change: { config: { url: "http://a.example", tokn: "x" } },
    error: "config.tokn: is not a known field",
  },
  { why: "an unknown type", change: { type: "other" }, error: "type: must be one of" },
  { why: "a list as configuration", change: { config: [] }, error: "config: must be an object" },
  {
    why: "a zone that is no name",
    change: { zones: ["a b"] },
    error: "zones[0]: must be a domain name",
  },
  {
    why: "a port that there is not",
    change: { type: "rfc2136", config: { server: "ns1.example.com:99999" } },
    error: "config.server: must have a port from 1 to 65535",
  },
  {
    why: "the name of a key alone",
    change: { type: "rfc2136", config: { server: "ns1.example.com", tsig_key_name: "k" } },
    error: "config.tsig_secret: is required with tsig_key_name",
  },
  {
    why: "a key that is no base64",
    change: {
      type: "rfc2136",
      config: { server: "ns1.example.com", tsig_key_name: "k", tsig_secret: "%%%" },
    },
    error: "config.tsig_secret: must be base64",
  },
  {
    why: "what looks encrypted",
    change: { config: { url: "http://a.example", token: { sealed: "sealed:1:00000000:AA" } } },
    error: "looks like a value encrypted by the gateway",
  },
])("$why is rejected", async ({ change, error }) => {
  const answer = await editor("POST /dns-providers", { ...webhook("bad"), ...change });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toContain(error);
});

test("a test of an unreachable provider reports the reason", async () => {
  const body = webhook("dead", { url: "http://127.0.0.1:1" });
  await editor("POST /dns-providers", body);
  const { status, body: report } = await editor("POST /dns-providers/dead/test", {
    zone: "example.com",
  });
  expect([status, report.ok]).toEqual([200, false]);
  expect(report.checks[1]).toEqual({
    name: "write",
    status: "failed",
    message: "the webhook: 127.0.0.1:1 refused the connection",
  });
});

test("a test writes only in the provider's zones", async () => {
  await editor("POST /dns-providers", { ...webhook("own"), zones: ["own.example"] });
  hookSeen = [];
  const foreign = await editor("POST /dns-providers/own/test", { zone: "other.example" });
  expect(foreign.body).toMatchObject({ ok: false });
  expect(foreign.body.checks.slice(1)).toEqual([
    {
      name: "write",
      status: "failed",
      message: "No record was written: the zones of the provider are own.example",
    },
  ]);
  expect(hookSeen).toEqual([]);
  expect((await editor("POST /dns-providers/own/test", { zone: "a.own.example" })).body.ok).toBe(
    true,
  );
});

test("an rfc2136 key stays when only something else is changed", async () => {
  const config = { server: "ns1.example.com", tsig_key_name: "k", tsig_secret: "YWJj" };
  await editor("POST /dns-providers", { name: "bind", type: "rfc2136", config });
  const patched = await editor("PATCH /dns-providers/bind", { config: { ttl: 30 } });
  expect(patched.status).toBe(200);
  const without = await editor("PATCH /dns-providers/bind", { config: { tsig_secret: null } });
  expect(without.body.error).toContain("config.tsig_secret: is required with tsig_key_name");
});
