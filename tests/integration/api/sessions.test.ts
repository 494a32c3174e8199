// Sessions and tokens over the API: visibility, revocation, and values that are shown once and never stored.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { expectOk, PASSWORD, ROOT, usePeople } from "./people.ts";

const people = usePeople();

describe("the caller", () => {
  test("in a session, by a token and without credentials", async () => {
    await people.create("me", "editor");
    const me = await people.signIn("me@a.example");
    const { body } = await me("GET /auth/me");
    expect(body).toMatchObject({
      authentication: "enabled",
      role: "editor",
      method: "session",
      user: { email: "me@a.example", name: "me", role: "editor" },
    });
    expect((await people.token("GET /auth/me")).body).toEqual({
      authentication: "enabled",
      user: null,
      role: "admin",
      method: "token",
      expires_at: null,
    });
    expect((await people.nobody("GET /auth/me")).status).toBe(401);
  });

  test("who signs out loses the cookie and the session", async () => {
    await people.create("leaver");
    const [here, there] = [
      await people.signIn("leaver@a.example"),
      await people.signIn("leaver@a.example"),
    ];
    const { status, body, headers } = await here("POST /auth/logout");
    expect([status, body]).toEqual([200, { logged_out: true }]);
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^sluice_session_[0-9a-f]{8}=; HttpOnly; Max-Age=0; Path=\/; SameSite=Lax$/,
      ),
    ]);
    expect((await here("GET /auth/me")).status).toBe(401);
    expect((await here("POST /auth/logout")).status).toBe(401);
    expect((await there("GET /auth/me")).status).toBe(200);
    const token = await people.token("POST /auth/logout");
    expect([token.status, (await people.token("GET /auth/me")).status]).toEqual([200, 200]);
  });
});

describe("sessions", () => {
  test("are visible to their user and to admins, without their tokens", async () => {
    const { id } = await people.create("lister");
    const [one, two] = [
      await people.signIn("lister@a.example"),
      await people.signIn("lister@a.example"),
    ];
    const own = await expectOk(one("GET /auth/sessions"));
    expect(own).toHaveLength(2);
    expect(own[0]).toEqual({
      id: expect.any(String),
      user_id: id,
      email: "lister@a.example",
      method: "password",
      created_at: expect.any(String),
      expires_at: expect.any(String),
      address: "127.0.0.1",
      user_agent: expect.stringContaining("Bun"),
      current: true,
    });
    expect(own[1].current).toBe(false);
    expect((await expectOk(two("GET /auth/sessions")))[1].current).toBe(true);
    for (const key of [id, "Lister@a.example"]) {
      const seen = await expectOk(people.root(`GET /auth/sessions?user_id=${key}`));
      expect(seen.map((session: { id: string }) => session.id)).toEqual(
        own.map((session: { id: string }) => session.id),
      );
      expect((await one(`GET /auth/sessions?user_id=${key}`)).status).toBe(200);
    }
    const all = await expectOk(people.root("GET /auth/sessions?user_id="));
    const emails = all.map((session: { email: string }) => session.email);
    expect(emails).toContain(ROOT.email);
    expect(emails).toContain("lister@a.example");
    expect(await expectOk(people.token("GET /auth/sessions"))).toHaveLength(all.length);
    for (const key of ["", ROOT.email, "nobody@a.example"])
      expect((await one(`GET /auth/sessions?user_id=${key}`)).status).toBe(403);
    expect(await expectOk(people.root("GET /auth/sessions?user_id=nobody"))).toEqual([]);
    expect((await one("GET /auth/sessions?user=x")).status).toBe(400);
  });

  test("are ended by their user or an admin, and are 404 to others", async () => {
    await people.create("ender");
    await people.create("stranger", "editor");
    const mine = await people.signIn("ender@a.example");
    const [{ id }] = await expectOk(mine("GET /auth/sessions"));
    const stranger = await people.signIn("stranger@a.example");
    const other = await stranger(`DELETE /auth/sessions/${id}`);
    expect([other.status, other.body]).toEqual([404, { error: `session "${id}" does not exist` }]);
    const ended = await people.root(`DELETE /auth/sessions/${id}`);
    expect([ended.status, ended.body]).toEqual([200, { deleted: true }]);
    expect((await mine("GET /auth/me")).status).toBe(401);
    expect((await people.root(`DELETE /auth/sessions/${id}`)).status).toBe(404);
    const again = await people.signIn("ender@a.example");
    const [current] = await expectOk(again("GET /auth/sessions"));
    expect((await again(`DELETE /auth/sessions/${current.id}`)).status).toBe(200);
    expect((await again("GET /auth/me")).status).toBe(401);
  });
});

describe("a named token", () => {
  test("is shown on creation and never again", async () => {
    const made = await expectOk(people.root("POST /tokens", { name: "deploy", role: "editor" }));
    expect(made.token).toMatch(/^slt_[A-Za-z0-9_-]{43}$/);
    const hash = new Bun.CryptoHasher("sha256").update(made.token).digest("hex");
    const { token, ...rest } = made;
    expect(rest).toEqual({
      id: expect.any(String),
      name: "deploy",
      role: "editor",
      enabled: true,
      expires_at: null,
      allowed_cidrs: [],
      tags: [],
      description: "",
      fingerprint: hash.slice(0, 8),
      last_used_at: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(await expectOk(people.root("GET /tokens/deploy"))).toEqual(rest);
    const changes = [
      await people.root("PATCH /tokens/deploy", { description: "of the pipeline" }),
      await people.root(`PUT /tokens/${made.id}`, { ...made, role: "viewer" }),
    ];
    for (const { status, body } of changes) {
      expect([status, "token" in body]).toEqual([200, false]);
      expect(body.fingerprint).toBe(rest.fingerprint);
    }
    const viewer = { authorization: `Bearer ${token}` };
    const services = await people.gateway.api("GET", "/api/v1/services", undefined, viewer);
    expect(services.status).toBe(200);
    const { last_used_at } = await expectOk(people.root("GET /tokens/deploy"));
    expect(Date.parse(last_used_at)).toBeGreaterThan(Date.parse(made.created_at));
  });

  test("in a dry run is not shown, because it does not exist", async () => {
    const { status, headers, body } = await people.root("POST /tokens?dry_run=1", { name: "try" });
    expect([status, headers.get("x-dry-run"), "token" in body]).toEqual([200, "true", false]);
    expect((await people.root("GET /tokens/try")).status).toBe(404);
  });

  test.each([
    { body: { name: "deploy" }, status: 409, says: 'token "deploy" exists already' },
    { body: { name: "x", token: "slt_chosen" }, status: 400, says: "token: is set by the gateway" },
    { body: { name: "x", token_hash: "0" }, status: 400, says: "token_hash: is set by" },
    { body: { name: "x", role: "root" }, status: 400, says: "role: must be one of" },
    { body: { name: "x", expires_at: "tomorrow" }, status: 400, says: "expires_at: must be" },
    { body: { name: "x", allowed_cidrs: ["10.0.0.0/33"] }, status: 400, says: "allowed_cidrs[0]" },
  ])("is rejected: $says", async ({ body, status, says }) => {
    const answer = await people.root("POST /tokens", body);
    expect([answer.status, answer.body.error]).toEqual([status, expect.stringContaining(says)]);
  });
});

describe("the admin token", () => {
  test("is created, rotated, listed and deleted", async () => {
    const made = await expectOk(people.root("POST /admin/token"));
    expect(made).toEqual({
      token: expect.stringMatching(/^slt_[A-Za-z0-9_-]{43}$/),
      fingerprint: expect.stringMatching(/^[0-9a-f]{8}$/),
      created_at: expect.any(String),
    });
    const { token: _, ...known } = made;
    expect(await expectOk(people.root("GET /admin/token"))).toEqual({
      ...known,
      exists: true,
      last_used_at: null,
    });
    const rotated = await expectOk(people.root("POST /admin/token"));
    expect(rotated.token).not.toBe(made.token);
    expect((await people.root("DELETE /admin/token")).body).toEqual({ deleted: true });
    expect((await people.root("DELETE /admin/token")).status).toBe(404);
    expect(await expectOk(people.root("GET /admin/token"))).toEqual({
      exists: false,
      fingerprint: null,
      created_at: null,
      last_used_at: null,
    });
  });
});

test("no token, cookie or password is in the database, the log or the audit log", async () => {
  const { gateway } = people;
  const { token } = await expectOk(people.root("POST /tokens", { name: "hidden" }));
  const admin = await expectOk(people.root("POST /admin/token"));
  const body = { email: ROOT.email, password: PASSWORD };
  const response = await gateway.api("POST", "/api/v1/auth/login", body);
  const cookie =
    /sluice_session_\w+=([^;]+)/.exec(response.headers.get("set-cookie") ?? "")?.[1] ?? "";
  const stream = `/api/v1/events?access_token=${token}`;
  expect((await gateway.api("GET", stream)).status).toBe(200);
  expect((await gateway.api("GET", `${stream}&kinds=nope`)).status).toBe(400);
  expect((await gateway.api("POST", stream)).status).toBe(405);
  const audit = JSON.stringify(await expectOk(people.root("GET /audit")));
  const database = new Database(join(gateway.dataDir, "sluice.db"), { readonly: true });
  const stored = Buffer.from(database.serialize()).toString("latin1");
  database.close();
  expect(cookie).toHaveLength(43);
  for (const secret of [token, admin.token, cookie, PASSWORD])
    for (const place of [stored, gateway.stderr, gateway.stdout, audit])
      expect(place).not.toContain(secret);
  const hash = new Bun.CryptoHasher("sha256").update(token).digest("hex");
  expect(stored).toContain(hash);
});
