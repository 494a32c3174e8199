// Users, sessions, the audit log and certificates of compiled nodes over a real PostgreSQL: what is known on one is known on all.
import { expect } from "bun:test";
import { base32 } from "oslo/encoding";
import { cleanupsOf } from "../support/cleanups.ts";
import { hotp, stepAt } from "../support/one-time-password.ts";
import { curl } from "../support/curl.ts";
import { TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Pebble } from "../support/pebble.ts";
import { quietPort } from "../support/quiet-port.ts";
import type { Postgres } from "../support/postgres.ts";
import { ScriptedAuthority } from "../support/scripted-authority.ts";

const { afterEach, describe, test } = needs("executable", "curl", "postgres");

const cleanups = cleanupsOf(afterEach);

const PASSWORD = "correct horse battery";
const ROOT = "root@a.example";
const userOf = (email: string) => ({ email, name: email, role: "admin", password: PASSWORD });

/** Its first user is ROOT. */
async function startFleet(count: number): Promise<TestFleet> {
  const fleet = await TestFleet.start(count);
  cleanups.push(() => fleet.stop());
  const { status } = await call(fleet.nodes[0]!, "POST /api/v1/users", {}, userOf(ROOT));
  expect(status).toBe(200);
  return fleet;
}

interface SignedIn {
  readonly status: number;
  readonly text: string;
  readonly headers: { readonly cookie: string };
}

async function signIn(node: Gateway, fields: object = {}): Promise<SignedIn> {
  const body = { email: ROOT, password: PASSWORD, ...fields };
  const response = await node.api("POST", "/api/v1/auth/login", body);
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  return { status: response.status, text: await response.text(), headers: { cookie } };
}

type Headers = Record<string, string>;

async function call(node: Gateway, words: string, headers: Headers, body?: unknown) {
  const [method = "", path = ""] = words.split(" ");
  const response = await node.api(method, path, body, headers);
  const text = await response.text();
  return {
    status: response.status,
    nodes: response.headers.get("sluice-nodes"),
    text,
    // biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
    body: (text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : null) as any,
  };
}

const statusOn = async (node: Gateway, headers: Headers) =>
  (await call(node, "GET /api/v1/users", headers)).status;

interface AuditRow {
  readonly action: string;
  readonly result: string;
  readonly object_name: string | null;
  readonly detail: { readonly error?: string } | null;
}

const logins = async (node: Gateway, headers: Headers, result: string): Promise<AuditRow[]> =>
  (await call(node, "GET /api/v1/audit?action=login", headers)).body.filter(
    (row: AuditRow) => row.result === result,
  );

/** The decoded entries of the log. */
async function logText(postgres: Postgres): Promise<string> {
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  const rows = await sql`select body from sluice.entry order by position`;
  await sql.close();
  return rows
    .map(({ body }: { body: Uint8Array }) => Buffer.from(Bun.zstdDecompressSync(body)).toString())
    .join("\n");
}

describe("the audit log", () => {
  test("has the sign-ins of all nodes once, also those from while the database was away", async () => {
    const { postgres, nodes } = await startFleet(2);
    const [first, second] = nodes as [Gateway, Gateway];
    const { headers } = await signIn(first);
    await eventually(async () => (await logins(second, headers, "ok")).length === 1);
    await signIn(second, { password: "wrong" });
    await eventually(async () => (await logins(first, headers, "refused")).length === 1);
    await postgres.kill();
    const wrong = { "x-admin-token": "no" };
    expect((await call(second, "POST /api/v1/services", wrong, { name: "s" })).status).toBe(401);
    await postgres.start();
    const refusedOn = async (node: Gateway) =>
      (await call(node, "GET /api/v1/audit?result=refused", headers)).body.length;
    await eventually(async () => (await refusedOn(first)) === 2);
    // One more batch from either side, after which a repeated one would have arrived.
    await signIn(first, { password: "wrong" });
    await signIn(second, { password: "wrong" });
    for (const node of nodes) await eventually(async () => (await refusedOn(node)) >= 4);
    for (const node of nodes) {
      expect(await refusedOn(node)).toBe(4);
      expect(await logins(node, headers, "ok")).toHaveLength(1);
    }
  });

  test("has what a node has seen right before its end", async () => {
    const { nodes } = await startFleet(2);
    const [first, second] = nodes as [Gateway, Gateway];
    const { headers } = await signIn(first);
    const { body } = await call(first, "POST /api/v1/tokens", headers, {
      name: "robot",
      role: "viewer",
    });
    await signIn(second, { password: "wrong" });
    expect(await statusOn(second, { authorization: `Bearer ${body.token}` })).toBe(403);
    await second.stop();
    expect(await logins(first, headers, "refused")).toHaveLength(1);
    const token = (await call(first, "GET /api/v1/tokens/robot", headers)).body;
    expect(token.last_used_at).toBeString();
  });
});

test("ten failed sign-ins on two nodes block the account on both, and the log holds no clear text", async () => {
  const { postgres, nodes } = await startFleet(2);
  const [first, second] = nodes as [Gateway, Gateway];
  const { headers } = await signIn(first);
  const inWrongField = "hunter2-in-the-wrong-field";
  for (const node of nodes)
    for (let round = 0; round < 5; round++) {
      const [email, password] = round === 0 ? [inWrongField, "x"] : [ROOT, inWrongField];
      expect((await signIn(node, { email, password })).status).toBe(401);
    }
  for (const node of nodes)
    await eventually(async () => (await logins(node, headers, "refused")).length === 10);
  for (const node of nodes) expect((await signIn(node)).status).toBe(429);
  expect(await statusOn(second, headers)).toBe(200);
  const text = await logText(postgres);
  expect(text).toContain("login_failures");
  expect(text).not.toContain(inWrongField);
});

describe("at the time of the reply", () => {
  test("a user who was disabled on one node is out on the others", async () => {
    const { nodes } = await startFleet(2);
    const [first, second] = nodes as [Gateway, Gateway];
    const { headers } = await signIn(first);
    await call(first, "POST /api/v1/users", headers, userOf("anna@a.example"));
    for (let round = 0; round < 10; round++) {
      const [one, other] = round % 2 === 0 ? [first, second] : [second, first];
      const anna = await signIn(other, { email: "anna@a.example" });
      expect(await statusOn(other, anna.headers)).toBe(200);
      const path = "PATCH /api/v1/users/anna@a.example";
      const disabled = await call(one, path, headers, { enabled: false });
      expect([disabled.status, disabled.nodes]).toEqual([200, "2/2"]);
      expect(await statusOn(other, anna.headers)).toBe(401);
      await call(one, path, headers, { enabled: true });
      // Its sessions have ended, not only paused.
      expect(await statusOn(other, anna.headers)).toBe(401);
    }
  });

  test("a session that has ended on one node has ended on the others", async () => {
    const { nodes } = await startFleet(2);
    const [first, second] = nodes as [Gateway, Gateway];
    for (let round = 0; round < 10; round++) {
      const { headers } = await signIn(first);
      await eventually(async () => (await statusOn(second, headers)) === 200);
      await call(first, "POST /api/v1/auth/logout", headers);
      expect(await statusOn(second, headers)).toBe(401);
    }
  });
});

test("a code of a second factor works once, on whichever node it arrives first", async () => {
  const { nodes } = await startFleet(2);
  const [first, second] = nodes as [Gateway, Gateway];
  const { headers } = await signIn(first);
  for (let round = 0; round < 20; round++) {
    const email = `user${round}@a.example`;
    const { body: user } = await call(first, "POST /api/v1/users", headers, userOf(email));
    // Only users themselves set up their second factor.
    const own = (await signIn(first, { email })).headers;
    const totp = `/api/v1/users/${user.id}/totp`;
    const begun = await call(first, `POST ${totp}`, own, { current_password: PASSWORD });
    const code = (offset: number) =>
      hotp(base32.decode(begun.body.secret), stepAt(Date.now() + offset * 30_000));
    await call(first, `POST ${totp}/confirm`, own, { code: code(-1) });
    // Required on the other node, too.
    if (round === 0) await eventually(async () => (await signIn(second, { email })).status === 401);
    const body = JSON.stringify({ email, password: PASSWORD, totp: code(0) });
    // The throttle counts each address: the loser of a round is a failure.
    const words = ["--interface", `127.0.2.${round + 1}`, "--json", body];
    const both = await Promise.all(
      nodes.map((node) => curl(`${node.admin}/api/v1/auth/login`, words)),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
  }
});

test("a node that is cut off for long trusts no session, is not ready, and goes on proxying", async () => {
  const { postgres, nodes } = await startFleet(1);
  const [node] = nodes as [Gateway];
  const { headers } = await signIn(node);
  const token = (await call(node, "POST /api/v1/tokens", headers, { name: "robot", role: "admin" }))
    .body.token;
  const robot = { authorization: `Bearer ${token}` };
  const limit = async (fleet: object) =>
    (await call(node, "PATCH /api/v1/settings", headers, { fleet })).status;
  expect(await limit({ max_stale_sessions: 1500 })).toBe(200);
  const port = quietPort();
  const listener = { name: "web", address: "127.0.0.1", port };
  expect((await call(node, "POST /api/v1/listeners", headers, listener)).status).toBe(200);
  const proxied = async () => (await fetch(`http://127.0.0.1:${port}/`)).status;
  expect([await statusOn(node, headers), await proxied()]).toEqual([200, 404]);
  await postgres.kill();
  expect(await statusOn(node, headers)).toBe(200);
  await eventually(async () => (await statusOn(node, headers)) === 401);
  const refused = await call(node, "GET /api/v1/users", headers);
  expect(refused.text).toContain("cut off from the database of its fleet");
  expect([await statusOn(node, robot), await proxied()]).toEqual([200, 404]);
  expect((await call(node, "GET /readyz", {})).status).toBe(200);
  expect((await call(node, "POST /api/v1/services", robot, { name: "s" })).status).toBe(503);
  const other = await signIn(node);
  expect(other.status).toBe(503);
  expect(other.text).toContain("cut off from the database of its fleet");
  // What it says about a wrong password is the same.
  expect((await signIn(node, { password: "wrong" })).text.replace(/"request_id.*/, "")).toBe(
    other.text.replace(/"request_id.*/, ""),
  );
  // A start does not make it younger.
  await node.kill9();
  await node.start();
  await eventually(async () => (await statusOn(node, headers)) === 401);
  await postgres.start();
  await eventually(async () => (await statusOn(node, headers)) === 200);
  expect(await limit({ max_stale: 500 })).toBe(200);
  await postgres.kill();
  const ready = await eventually(async () => {
    const reply = await call(node, "GET /readyz", {});
    return reply.status === 503 ? reply : null;
  });
  expect(ready.text).toContain("fleet.max_stale");
  await postgres.start();
  await eventually(async () => (await call(node, "GET /readyz", {})).status === 200);
});

test("one node notifies of a target that is down for all", async () => {
  const received: string[] = [];
  const hook = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { event, status, gateway } = (await request.json()) as Record<string, string>;
      received.push(`${event} ${status} ${gateway}`);
      return new Response();
    },
  });
  cleanups.push(() => hook.stop(true));
  const { nodes } = await startFleet(3);
  const [first] = nodes as [Gateway];
  const { headers } = await signIn(first);
  const config = { url: `http://127.0.0.1:${hook.port}/` };
  const alert = { name: "a", type: "webhook", events: ["target_down"], config };
  expect((await call(first, "POST /api/v1/alerts", headers, alert)).status).toBe(200);
  const service = {
    name: "s",
    health: { active: { enabled: true, type: "tcp", interval: 1, unhealthy_threshold: 1 } },
    targets: [{ host: "127.0.0.1", port: 1 }],
  };
  expect((await call(first, "POST /api/v1/services", headers, service)).status).toBe(200);
  const isDownOn = async (node: Gateway) =>
    (await call(node, "GET /api/v1/targets?service_id=s", headers)).body[0].health.state ===
    "unhealthy";
  for (const node of nodes) await eventually(() => isDownOn(node));
  await eventually(() => received.length > 0);
  // Each node answers for its queue: none of them has another message.
  const waiting = async (node: Gateway) =>
    (await call(node, "GET /api/v1/alerts/a/messages", headers)).body.length;
  const counts = await Promise.all(nodes.map(waiting));
  expect(counts).toEqual([1, 0, 0]);
  expect(received).toEqual(["target_down firing n1"]);
});

describe("certificates", () => {
  async function startAuthority() {
    const authority = await ScriptedAuthority.start(() => Date.now());
    cleanups.push(() => authority.stop());
    return authority;
  }

  async function order(node: Gateway, headers: Headers, authority: ScriptedAuthority) {
    const { directoryUrl: directory_url, trusted: ca_certificates } = authority;
    const account = { name: "ca", directory_url, ca_certificates, terms_agreed: true };
    await call(node, "POST /api/v1/acme/accounts", headers, account);
    const certificate = { name: "c", source: "acme", domains: ["a.example"] };
    const { status } = await call(node, "POST /api/v1/certificates", headers, certificate);
    expect(status).toBe(200);
  }

  const statusOfCertificate = async (node: Gateway, headers: Headers) =>
    (await call(node, "GET /api/v1/certificates/c", headers)).body.status;

  test("are issued by one node, and held by all", async () => {
    const { postgres, nodes } = await startFleet(3);
    const [, , third] = nodes as [Gateway, Gateway, Gateway];
    const { headers } = await signIn(third);
    const authority = await startAuthority();
    await order(third, headers, authority);
    for (const node of nodes)
      await eventually(async () => (await statusOfCertificate(node, headers)) === "valid");
    // Asked on a node that does not issue.
    await call(third, "POST /api/v1/certificates/c/renew", headers, {});
    await eventually(() => authority.orders.length === 2);
    const fingerprints = async () =>
      await Promise.all(
        nodes.map(
          async (node) =>
            (await call(node, "GET /api/v1/certificates/c", headers)).body.fingerprint as string,
        ),
      );
    await eventually(async () => new Set(await fingerprints()).size === 1);
    expect(authority.orders).toHaveLength(2);
    const text = await logText(postgres);
    expect(text).toContain("acme_state");
    expect(text).not.toContain("PRIVATE KEY");
  });

  test("keep the key of their account on all nodes while one orders", async () => {
    const { nodes } = await startFleet(2);
    const [first, second] = nodes as [Gateway, Gateway];
    const { headers } = await signIn(second);
    const authority = await startAuthority();
    const { promise, resolve } = Promise.withResolvers<void>();
    authority.issueGate = promise;
    await order(first, headers, authority);
    const rotate = () => call(second, "POST /api/v1/acme/accounts/ca/rotate-key", headers, {});
    await eventually(async () => (await rotate()).status === 409);
    expect((await rotate()).body.error).toContain("an order with it is in progress");
    resolve();
    await eventually(async () => (await statusOfCertificate(second, headers)) === "valid");
  });

  needs("executable", "postgres", "pebble", "network namespaces").test(
    "are validated on a node that did not order them, by http-01 and tls-alpn-01",
    async () => {
      const fleet = await TestFleet.start(2, { networks: true });
      cleanups.push(() => fleet.stop());
      const [first] = fleet.nodes as [Gateway];
      const pebble = new Pebble({ hostname: fleet.hostname, httpPort: 8080, tlsPort: 8443 });
      cleanups.push(() => pebble.stop());
      await pebble.start();
      await first.ok("POST", "/api/v1/acme/accounts", {
        name: "pebble",
        directory_url: pebble.directoryUrl,
        ca_certificates: pebble.trusted,
        terms_agreed: true,
      });
      // The first node orders.
      for (const challenge of ["http-01", "tls-alpn-01"]) {
        const domain = `${challenge}.example`;
        await pebble.setAddress(domain, [fleet.addresses[1] ?? ""]);
        const certificate = { name: challenge, source: "acme", domains: [domain], challenge };
        await first.ok("POST", "/api/v1/certificates", certificate);
      }
      for (const node of fleet.nodes)
        for (const name of ["http-01", "tls-alpn-01"])
          await eventually(async () => {
            const { status, last_error } = await node.ok("GET", `/api/v1/certificates/${name}`);
            if (status !== "valid") throw new Error(`${name} is ${status}: ${last_error}`);
            return true;
          });
    },
    60_000,
  );

  test("are issued by the next node when the first has ended", async () => {
    const { nodes } = await startFleet(2);
    const [first, second] = nodes as [Gateway, Gateway];
    const { headers } = await signIn(second);
    const authority = await startAuthority();
    const { promise, resolve } = Promise.withResolvers<void>();
    authority.gate = promise;
    await order(second, headers, authority);
    await eventually(() => authority.orders.length === 1);
    await first.kill9();
    await eventually(() => authority.orders.length === 2);
    resolve();
    await eventually(async () => (await statusOfCertificate(second, headers)) === "valid");
  });
});
