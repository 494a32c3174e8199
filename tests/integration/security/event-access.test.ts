// Event streams and the audit log once there are users: who may listen, and that a stream ends with the right to it.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type EventClient, openEvents } from "../../support/event-client.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

const password = "correct horse battery staple";
const email = (name: string) => `${name}@example.com`;

let gateway: Gateway;
let admin = "";
const streams: EventClient[] = [];
/** Streams that were open while there were no users. */
let before: EventClient[] = [];

beforeAll(async () => {
  gateway = await startGateway();
  before = await Promise.all([follow({}), follow({}, "?kinds=config")]);
  await createRoot();
});
async function createRoot(): Promise<void> {
  const user = { email: email("root"), name: "root", role: "admin", password };
  await gateway.ok("POST", "/api/v1/users", user);
  admin = await signIn("root");
}
afterAll(() => gateway?.stop());
afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
});

const url = (path: string) => `${gateway.admin}/api/v1${path}`;
const cookieOf = (cookie: string) => ({ cookie });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function follow(headers: Record<string, string>, query = ""): Promise<EventClient> {
  const stream = await openEvents(url(`/events${query}`), headers);
  if (stream.status === 200) await eventually(() => stream.lastId);
  streams.push(stream);
  return stream;
}

/** The session cookie, as it is sent back. */
async function signIn(name: string): Promise<string> {
  const answer = await gateway.api("POST", "/api/v1/auth/login", { email: email(name), password });
  expect(answer.status).toBe(200);
  return answer.headers.getSetCookie()[0]!.split(";")[0]!;
}

// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
async function asAdmin(line: string, body?: unknown): Promise<any> {
  const [method = "", path = ""] = line.split(" ");
  const answer = await gateway.api(method, `/api/v1${path}`, body, cookieOf(admin));
  expect([line, answer.status]).toEqual([line, 200]);
  return await answer.json();
}

/** A new user, signed in. */
async function person(name: string, role = "viewer") {
  const { id } = await asAdmin("POST /users", { email: email(name), name, role, password });
  const cookie = await signIn(name);
  return { id, cookie, stream: await follow(cookieOf(cookie)) };
}

const audit = async (query = "") => await asAdmin(`GET /audit${query}`);

test("unauthenticated streams end when the first user is created, without an event of it", async () => {
  for (const stream of before) {
    await stream.ends();
    expect(stream.events).toEqual([]);
  }
});

describe("without permission", () => {
  test("there is no stream: no credentials, wrong ones, and tokens in the query elsewhere", async () => {
    expect((await follow({})).status).toBe(401);
    expect((await follow(bearer("nope"))).status).toBe(401);
    expect((await follow({}, "?access_token=nope")).status).toBe(401);
    expect((await follow(cookieOf("sluice_session=nope"))).status).toBe(401);
    const { token } = await asAdmin("POST /admin/token");
    expect((await follow({}, `?access_token=${token}`)).status).toBe(200);
    expect((await gateway.api("GET", `/api/v1/audit?access_token=${token}`)).status).toBe(401);
    expect(gateway.stderr).not.toContain(token);
  });

  test("the audit log is neither streamed nor listed: viewers and editors", async () => {
    for (const role of ["viewer", "editor"]) {
      const { cookie, stream } = await person(`no-audit-${role}`, role);
      expect((await follow(cookieOf(cookie), "?kinds=audit")).status).toBe(403);
      expect((await follow(cookieOf(cookie), "?kinds=config,audit")).status).toBe(403);
      expect((await gateway.api("GET", "/api/v1/audit", undefined, cookieOf(cookie))).status).toBe(
        403,
      );
      await asAdmin("POST /secrets", { name: `secret-of-${role}`, value: "canary" });
      await asAdmin("POST /services", { name: `service-of-${role}` });
      const events = await eventually(() =>
        stream.events.find(({ data }) => data.changes?.[0]?.name === `service-of-${role}`),
      );
      expect(events.kind).toBe("config");
      expect(stream.text).not.toMatch(/canary|secret-of|event: audit|before/);
      const hidden = stream.events.filter(({ data }) => data.changes.length === 0);
      expect(hidden.map(({ data }) => data.summary)).toContain("change management access");
    }
  });
});

describe("a stream ends at once", () => {
  const endings: {
    why: string;
    end: (user: { id: string; cookie: string }) => Promise<unknown>;
  }[] = [
    {
      why: "signs out",
      end: ({ cookie }) => gateway.api("POST", "/api/v1/auth/logout", undefined, cookieOf(cookie)),
    },
    { why: "is deleted", end: ({ id }) => asAdmin(`DELETE /users/${id}`) },
    { why: "is disabled", end: ({ id }) => asAdmin(`PATCH /users/${id}`, { enabled: false }) },
    { why: "is demoted", end: ({ id }) => asAdmin(`PATCH /users/${id}`, { role: "viewer" }) },
    {
      why: "gets another password",
      end: ({ id }) => asAdmin(`PUT /users/${id}/password`, { password: `${password} 2` }),
    },
  ];
  test.each(endings)("when its user $why", async ({ why, end }) => {
    const user = await person(why.replaceAll(" ", "-"), "admin");
    const other = await follow(cookieOf(admin));
    await end(user);
    await user.stream.ends();
    // Permitted readers receive the event that ends the stream; the reader that lost its permission does not.
    await other.receives(1);
    expect(
      user.stream.events.filter(({ data }) => data.kind === "user" && data.object_id === user.id),
    ).toEqual([]);
    expect(other.isEnded).toBe(false);
    expect((await follow(cookieOf(user.cookie))).status).toBe(401);
  });

  test("when the admin token is replaced, and when it is deleted", async () => {
    for (const line of ["POST /admin/token", "DELETE /admin/token"]) {
      const { token } = await asAdmin("POST /admin/token");
      const [first, second] = [
        await follow(bearer(token)),
        await follow({}, `?access_token=${token}`),
      ];
      await asAdmin(line);
      await Promise.all([first.ends(), second.ends()]);
      expect((await follow(bearer(token))).status).toBe(401);
    }
  });

  test("when its token is disabled, deleted, or expires", async () => {
    const make = async (name: string, fields: object = {}) => {
      const { id, token } = await asAdmin("POST /tokens", { name, role: "viewer", ...fields });
      return { id, stream: await follow(bearer(token)) };
    };
    const disabled = await make("disabled");
    await asAdmin(`PATCH /tokens/${disabled.id}`, { enabled: false });
    await disabled.stream.ends();
    const deleted = await make("deleted");
    await asAdmin(`DELETE /tokens/${deleted.id}`);
    await deleted.stream.ends();
    const soon = new Date(Date.now() + 1000).toISOString();
    const short = await make("short", { expires_at: soon });
    expect(short.stream.status).toBe(200);
    await short.stream.ends();
  });

  test("when its network is blocked", async () => {
    const { stream } = await person("network");
    await asAdmin("PATCH /settings", { admin_allowed_cidrs: ["192.0.2.0/24", "127.0.0.1"] });
    await asAdmin("POST /services", { name: "network" });
    await eventually(() => stream.events.some(({ data }) => data.summary.includes("network")));
    expect(stream.isEnded).toBe(false);
    await asAdmin("PATCH /settings?force=1", { admin_allowed_cidrs: ["192.0.2.0/24"] });
    await stream.ends();
    // From here on no client is allowed: the gateway starts anew for the rest.
    await gateway.stop();
    gateway = await startGateway();
    await createRoot();
  });
});

describe("the audit log", () => {
  test("records sign-ins, failed ones, and sign-outs", async () => {
    await gateway.api("POST", "/api/v1/auth/login", {
      email: email("root"),
      password: "canary-wrong",
    });
    const cookie = await signIn("root");
    await gateway.api("POST", "/api/v1/auth/logout", undefined, cookieOf(cookie));
    const entries = (await audit("?kind=session")).slice(-3);
    expect(entries).toMatchObject([
      {
        action: "login",
        method: "none",
        actor: "anonymous",
        result: "refused",
        address: "127.0.0.1",
      },
      { action: "login", method: "session", actor: email("root"), result: "ok" },
      { action: "logout", method: "session", actor: email("root"), result: "ok" },
    ]);
    expect(JSON.stringify(await audit())).not.toContain("canary");
  });

  test("records denied requests, with a session, a token and without either", async () => {
    const { cookie } = await person("refused");
    const { token } = await asAdmin("POST /tokens", { name: "ci", role: "editor" });
    const tries = [
      { line: "POST /services", headers: cookieOf(cookie) },
      { line: "PATCH /settings", headers: bearer(token) },
      { line: "DELETE /users/root@example.com", headers: cookieOf(cookie) },
      { line: "POST /admin/token", headers: {} },
      { line: "POST /services", headers: bearer("wrong") },
    ];
    for (const { line, headers } of tries) {
      const [method = "", path = ""] = line.split(" ");
      await gateway.api(method, `/api/v1${path}`, {}, headers);
    }
    expect((await audit("?result=refused")).slice(-5)).toMatchObject([
      {
        actor: email("refused"),
        method: "session",
        action: "create",
        kind: "service",
        detail: { status: 403 },
      },
      { actor: "ci", method: "token", action: "update", kind: "settings", detail: { status: 403 } },
      { actor: email("refused"), action: "delete", kind: "user", object_name: "root@example.com" },
      { actor: "anonymous", method: "none", kind: "admin_token", detail: { status: 401 } },
      { actor: "anonymous", method: "none", kind: "service", detail: { status: 401 } },
    ]);
  });

  test("shows changes of a password, a token and a secret, and never the values", async () => {
    const { id } = await person("masked");
    await asAdmin(`PUT /users/${id}/password`, { password: "canary-password-1" });
    await asAdmin("POST /secrets", { name: "masked", value: "canary-secret-1" });
    await asAdmin("PATCH /secrets/masked", { value: "canary-secret-2" });
    const { token } = await asAdmin("POST /tokens", { name: "masked" });
    const text = JSON.stringify(await audit());
    for (const secret of [
      "canary-",
      token,
      "$argon2id$",
      "sealed:1:",
      Bun.SHA256.hash(token, "hex"),
    ])
      expect(text).not.toContain(secret);
    expect((await audit(`?object_id=${id}&action=update`)).at(-1).detail).toMatchObject({
      before: { password_hash: "***" },
      after: { password_hash: "*** (changed)" },
    });
    expect((await audit("?kind=secret")).at(-1).detail.after.sealed_value).toBe("*** (changed)");
    expect((await audit("?kind=token")).at(-1).detail.after.token_hash).toBe("***");
  });

  test("records the user and the token of each change", async () => {
    const { token } = await asAdmin("POST /tokens", { name: "deploy", role: "editor" });
    await gateway.api("POST", "/api/v1/services", { name: "by-token" }, bearer(token));
    await asAdmin("POST /services", { name: "by-session" });
    expect((await audit("?kind=service&result=ok")).slice(-2)).toMatchObject([
      { actor: "deploy", method: "token", object_name: "by-token" },
      { actor: email("root"), method: "session", object_name: "by-session" },
    ]);
    expect(await audit("?actor=deploy")).toHaveLength(1);
  });
});
