// What was good a moment ago: the very next request with it is refused, also on a connection that is open already.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { expectOk, PASSWORD, ROOT, usePeople } from "../api/people.ts";

const people = usePeople();
const next = "another horse battery";

describe("a session", () => {
  const endings = [
    { why: "is deleted", end: (id: string) => people.root(`DELETE /users/${id}`) },
    {
      why: "is disabled",
      end: (id: string) => people.root(`PATCH /users/${id}`, { enabled: false }),
    },
    {
      why: "is demoted",
      end: (id: string) => people.root(`PATCH /users/${id}`, { role: "viewer" }),
    },
    {
      why: "is replaced by a lower role and another name",
      end: (id: string) =>
        people.root(`PUT /users/${id}`, {
          email: `again-${id}@a.example`,
          name: "Again",
          role: "viewer",
          password: next,
        }),
    },
    {
      why: "is given another password",
      end: (id: string) => people.root(`PUT /users/${id}/password`, { password: next }),
    },
  ];
  test.each(endings)("ends as soon as its user $why", async ({ why, end }) => {
    const name = why.replaceAll(" ", "-");
    const { id } = await people.create(name, "editor");
    const [one, two] = [
      await people.signIn(`${name}@a.example`),
      await people.signIn(`${name}@a.example`),
    ];
    expect((await one("POST /services", { name })).status).toBe(200);
    expect((await end(id)).status).toBe(200);
    for (const session of [one, two])
      for (const line of ["GET /auth/me", "GET /services", `DELETE /services/${name}`])
        expect([line, (await session(line)).status]).toEqual([line, 401]);
    expect((await people.root(`GET /services/${name}`)).status).toBe(200);
    const left = await people.root(`GET /auth/sessions?user_id=${id}`);
    expect(left.body).toEqual([]);
  });

  test("of a promoted user has the new role at once", async () => {
    const { id } = await people.create("riser", "viewer");
    const session = await people.signIn("riser@a.example");
    expect((await session("GET /users")).status).toBe(403);
    await expectOk(people.root(`PATCH /users/${id}`, { role: "admin" }));
    expect((await session("GET /users")).status).toBe(200);
  });
});

describe("a token", () => {
  const endings = [
    { why: "is deleted", end: (id: string) => people.root(`DELETE /tokens/${id}`), status: 401 },
    {
      why: "is disabled",
      end: (id: string) => people.root(`PATCH /tokens/${id}`, { enabled: false }),
      status: 401,
    },
    {
      why: "has run out",
      end: (id: string) =>
        people.root(`PATCH /tokens/${id}`, { expires_at: "2026-01-01T00:00:00Z" }),
      status: 401,
    },
    {
      why: "may come from elsewhere only",
      end: (id: string) => people.root(`PATCH /tokens/${id}`, { allowed_cidrs: ["192.0.2.0/24"] }),
      status: 401,
    },
    {
      why: "has a lower role",
      end: (id: string) => people.root(`PATCH /tokens/${id}`, { role: "viewer" }),
      status: 403,
    },
  ];
  test.each(endings)("that $why is refused from the next request on", async (row) => {
    const made = await expectOk(people.root("POST /tokens", { name: row.why, role: "admin" }));
    const spoofed = { "x-forwarded-for": "192.0.2.1", forwarded: "for=192.0.2.1" };
    const headers = { authorization: `Bearer ${made.token}`, ...spoofed };
    const ask = async () =>
      (await people.gateway.api("GET", "/api/v1/users", undefined, headers)).status;
    expect(await ask()).toBe(200);
    expect((await row.end(made.id)).status).toBe(200);
    expect(await ask()).toBe(row.status);
  });
});

test("sessions, tokens and their last use survive a restart and a crash", async () => {
  const { gateway, root, token, create, signIn } = people;
  await create("stayer");
  const stayer = await signIn("stayer@a.example");
  const named = await expectOk(root("POST /tokens", { name: "stays", role: "viewer" }));
  const byName = { "x-admin-token": named.token };
  expect((await gateway.api("GET", "/api/v1/routes", undefined, byName)).status).toBe(200);
  const before = await expectOk(root("GET /tokens/stays"));
  await gateway.restart();
  expect((await expectOk(root("GET /tokens/stays"))).last_used_at).toBe(before.last_used_at);
  await gateway.kill9();
  await gateway.start();
  expect((await stayer("GET /auth/me")).body.user.email).toBe("stayer@a.example");
  expect((await token("GET /auth/me")).body.role).toBe("admin");
  expect((await gateway.api("GET", "/api/v1/routes", undefined, byName)).status).toBe(200);
  await expectOk(root("DELETE /users/stayer@a.example"));
  await gateway.restart();
  expect((await stayer("GET /auth/me")).status).toBe(401);
});

describe("when the first user is created", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway({ workers: 1 });
  });
  afterAll(() => gateway?.stop());

  test("open connections, and a body in flight, lose their access", async () => {
    const port = Number(new URL(gateway.admin).port);
    const open = async () => await connectRaw({ port });
    const [idle, slow] = [await open(), await open()];
    const ask = "GET /api/v1/services HTTP/1.1\r\nHost: localhost\r\n\r\n";
    idle.write(ask);
    await idle.until("HTTP/1.1 200 ");
    const body = '{"name":"late"}';
    slow.write(
      "POST /api/v1/services HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
        `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
    );
    // Both travel one after the other, so the other one has arrived once this is answered.
    await gateway.ok("GET", "/api/v1/services");
    await gateway.ok("POST", "/api/v1/users", ROOT);
    idle.write(ask);
    await idle.until("HTTP/1.1 401 ");
    slow.write(body.slice(5));
    await slow.until("HTTP/1.1 401 ");
    const status = await gateway.ok("GET", "/api/v1/admin/status");
    expect(status).toMatchObject({
      authentication: "enabled",
      setup_required: false,
      sso_enabled: false,
    });
    const login = { email: ROOT.email, password: PASSWORD };
    const response = await gateway.api("POST", "/api/v1/auth/login", login);
    const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const services = await gateway.api("GET", "/api/v1/services", undefined, { cookie });
    expect(await services.json()).toEqual([]);
    idle.close();
    slow.close();
  });

  test("of many simultaneous attempts without credentials, one is the first", async () => {
    const racing = await startGateway({ workers: 1 });
    try {
      const statuses = await Promise.all(
        Array.from({ length: 8 }, async (_, index) => {
          const user = { ...ROOT, email: `first${index}@a.example` };
          return (await racing.api("POST", "/api/v1/users", user)).status;
        }),
      );
      expect(statuses.toSorted()).toEqual([200, ...Array.from({ length: 7 }, () => 401)]);
    } finally {
      await racing.stop();
    }
  });
});
