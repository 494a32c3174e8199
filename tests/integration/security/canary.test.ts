// One of each secret is planted, used and misused; afterwards nothing that the gateway says, logs or stores may hold it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { fromBase32 } from "../../support/base32.ts";
import { openEvents } from "../../support/event-client.ts";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { Canaries, filesIn } from "./canaries.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
type Json = any;

const canaries = new Canaries();
const key = randomBytes(32);
const EMAIL = "admin@example.org";
const password = canaries.make("password of a user");
const secondPassword = canaries.make("second password of the user");
const wrongPassword = canaries.make("password that is wrong");
const secretValue = canaries.make("value of a secret");
const replacedValue = canaries.make("value of a secret that was replaced");
const clientSecret = canaries.make("client secret of single sign-on");
const hookPath = canaries.make("address of a web hook");
const hookKey = canaries.make("key of signatures of a web hook");
const hookToken = canaries.make("header of a web hook");
const mailPassword = canaries.make("password of a mailbox");
const wrongToken = canaries.keep(
  "token that is wrong",
  `slt_${randomBytes(32).toString("base64url")}`,
);
const wrongCookie = canaries.keep("cookie that is wrong", randomBytes(32).toString("base64url"));
canaries.keep("key of secrets", key.toString("base64url"));
canaries.keep("key of secrets in hexadecimal", key.toString("hex"));
canaries.keep("key of secrets as bytes", key.toString("latin1"));

let gateway: Gateway;
/** All responses, heads and bodies, without values that are shown once. */
let answers = "";
let session: Record<string, string> = {};
let admin: Record<string, string> = {};

/** Calls the API, stores the response for the search, and returns it. */
async function call(line: string, body?: unknown, headers = session) {
  const [method = "", path = ""] = line.split(" ");
  const response = await gateway.api(method, path, body, headers);
  const text = await response.text();
  const head = { ...response.headers.toJSON(), "set-cookie": "" };
  return { line, status: response.status, headers: response.headers, head, text };
}

async function keep(line: string, body?: unknown, headers = session): Promise<number> {
  const { head, text, status } = await call(line, body, headers);
  answers += `${line.split("?")[0]} ${status} ${JSON.stringify(head)} ${text}\n`;
  return status;
}

/** An answer that shows something once: only that is taken out of it. */
async function once(line: string, shown: readonly string[], body?: unknown): Promise<Json> {
  const { status, text } = await call(line, body);
  expect([line, status]).toEqual([line, 200]);
  const answer = JSON.parse(text);
  const rest = Object.entries(answer).filter(([name]) => !shown.includes(name));
  answers += `${line} ${JSON.stringify(Object.fromEntries(rest))}\n`;
  return answer;
}

async function signIn(secret: string, totp?: string): Promise<Record<string, string>> {
  const body = { email: EMAIL, password: secret, ...(totp === undefined ? {} : { totp }) };
  const { status, headers, text } = await call("POST /api/v1/auth/login", body, {});
  expect([status, text]).toEqual([200, text]);
  answers += text;
  const cookie = headers.get("set-cookie")?.split(";")[0] ?? "";
  canaries.keep(`cookie of session ${canaries.size}`, cookie.split("=")[1] ?? "");
  return { cookie };
}

/** Objects with secrets in their settings, each written and then changed. */
async function plantInObjects(): Promise<void> {
  const secret = (what: string) => canaries.make(what);
  const writes = (name: string) =>
    [
      [
        "/api/v1/plugins",
        { name: "oidc", label: "login" },
        () => ({
          config: {
            issuer: "http://127.0.0.1:1",
            client_id: "x",
            client_secret: secret(`secret of a plugin ${name}`),
          },
        }),
      ],
      [
        "/api/v1/acme/accounts",
        { name: "ca", directory_url: "https://127.0.0.1:1/", terms_agreed: true, enabled: false },
        () => ({ eab_key_id: "key", eab_hmac_key: secret(`key of an account ${name}`) }),
      ],
      [
        "/api/v1/dns-providers",
        { name: "zone", type: "webhook", zones: ["zone.test"] },
        () => ({ config: { url: "http://127.0.0.1:1/", token: secret(`token for DNS ${name}`) } }),
      ],
      [
        "/api/v1/alerts",
        { name: "ops", type: "webhook", events: ["target_down"] },
        () => ({
          config: { url: "http://127.0.0.1:1/", secret: secret(`secret of an alert ${name}`) },
        }),
      ],
    ] as const;
  for (const [path, fields, hidden] of writes("at first"))
    expect([path, await keep(`POST ${path}`, { ...fields, ...hidden() })]).toEqual([path, 200]);
  for (const [path, fields, hidden] of writes("afterwards")) {
    const one = `PATCH ${path}/${"label" in fields ? fields.label : fields.name}`;
    expect([one, await keep(one, hidden())]).toEqual([one, 200]);
    // Refused, with the secret in it.
    const wrong = [`POST ${path}`, { ...fields, ...hidden(), nonsense: true }] as const;
    expect([path, await keep(...wrong)]).toEqual([path, 400]);
  }
  for (const path of ["/api/v1/dns-providers/zone/test", "/api/v1/alerts/ops/test"])
    await keep(`POST ${path}`, {});
}

beforeAll(async () => {
  gateway = await startGateway({
    workers: 1,
    args: ["--log-level", "debug"],
    env: { SLUICE_SECRET_KEY: key.toString("base64") },
  });
  await keep("POST /api/v1/users", { email: EMAIL, name: "Admin", role: "admin", password });
  session = await signIn(password);

  const adminToken = (await once("POST /api/v1/admin/token", ["token"])).token;
  admin = { authorization: `Bearer ${canaries.keep("admin token", adminToken)}` };
  const named = { name: "deploy", role: "editor" };
  const namedToken = (await once("POST /api/v1/tokens", ["token"], named)).token;
  canaries.keep("named token", namedToken);
  expect(await keep("GET /api/v1/services", undefined, { "x-admin-token": namedToken })).toBe(200);

  expect(await keep("POST /api/v1/secrets", { name: "kept", value: replacedValue })).toBe(200);
  expect(await keep("PATCH /api/v1/secrets/kept", { value: secretValue })).toBe(200);
  const sso = { issuer: "http://127.0.0.1:1", client_id: "x", client_secret: clientSecret };
  expect(await keep("PUT /api/v1/sso", sso)).toBe(200);

  const hook = {
    url: `http://127.0.0.1:1/${hookPath}`,
    secret: hookKey,
    headers: [{ name: "Authorization", value: hookToken }],
  };
  const mail = {
    host: "127.0.0.1",
    port: 1,
    tls: "none",
    from: "a@b.example",
    to: ["c@d.example"],
    username: "a",
    password: mailPassword,
  };
  for (const [type, config] of Object.entries({ webhook: hook, smtp: mail })) {
    const alert = { name: type, type, events: ["target_down"], config };
    expect(await keep("POST /api/v1/alerts", alert)).toBe(200);
    expect(await keep(`POST /api/v1/alerts/${type}/test`)).toBe(200);
  }

  await keep("POST /api/v1/consumers", { username: "alice" });
  for (const type of ["key", "basic", "jwt", "hmac"]) {
    const path = "/api/v1/consumers/alice/credentials";
    const made = await once(`POST ${path}`, ["secret", "prefix"], { type });
    canaries.keep(`${type} of a consumer`, made.secret);
    const own = canaries.make(`own ${type} of a consumer`);
    expect(await keep(`PATCH /api/v1/credentials/${made.id}`, { secret: own })).toBe(200);
    const turned = `POST /api/v1/credentials/${made.id}/rotate`;
    canaries.keep(`${type} after rotation`, (await once(turned, ["secret"], {})).secret);
  }

  await plantInObjects();

  const setup = await once(`POST /api/v1/users/${EMAIL}/totp`, ["secret", "uri"], {
    current_password: password,
  });
  const totpKey = fromBase32(canaries.keep("key of one-time passwords", setup.secret));
  canaries.keep("key of one-time passwords in base64", Buffer.from(totpKey).toString("base64url"));
  canaries.keep("key of one-time passwords as bytes", Buffer.from(totpKey).toString("latin1"));
  const code = hotp(totpKey, stepAt(Date.now()));
  const confirmed = await once(`POST /api/v1/users/${EMAIL}/totp/confirm`, ["recovery_codes"], {
    code,
  });
  for (const [index, recovery] of confirmed.recovery_codes.entries()) {
    canaries.keep(`recovery code ${index}`, recovery);
    canaries.keep(`recovery code ${index} without marks`, recovery.replaceAll("-", ""));
  }
  session = await signIn(password, confirmed.recovery_codes[0]);
});
afterAll(async () => {
  await gateway.stop();
});

describe("an error", () => {
  test("with credentials does not contain them", async () => {
    const attempts = [
      ["POST /api/v1/auth/login", { email: EMAIL, password: wrongPassword }],
      ["POST /api/v1/auth/login", { email: "nobody@example.org", password: wrongPassword }],
      ["POST /api/v1/auth/login", { email: wrongPassword, password: "x" }],
      ["POST /api/v1/auth/login", { email: EMAIL, password, totp: wrongPassword.slice(0, 60) }],
      ["POST /api/v1/auth/login", { email: EMAIL, password: wrongPassword, unknown: password }],
      ["POST /api/v1/auth/login", { email: EMAIL, password: [wrongPassword] }],
      ["POST /api/v1/auth/login", `{"email":"${EMAIL}","password":${wrongPassword}}`],
      ["POST /api/v1/auth/login", `{"email":"${EMAIL}","password":"${wrongPassword}`],
      ["POST /api/v1/auth/login", `{"password":"${wrongPassword}","password":"${password}"}`],
    ] as const;
    for (const [line, body] of attempts)
      expect([400, 401, 429]).toContain(await keep(line, body, {}));
    const headers: Record<string, string>[] = [
      { authorization: `Bearer ${wrongToken}` },
      { authorization: wrongToken },
      { authorization: `Basic ${btoa(`admin:${wrongPassword}`)}` },
      { "x-admin-token": wrongToken },
      { ...admin, "x-admin-token": wrongToken },
      { cookie: `sluice_session=${wrongCookie}` },
    ];
    for (const each of headers)
      for (const line of ["GET /api/v1/users", "POST /api/v1/services"])
        expect(await keep(line, line.startsWith("POST") ? {} : undefined, each)).toBe(401);
  });

  test("in a URL does not contain it, nor does the log", async () => {
    const token = admin["authorization"]?.split(" ")[1] ?? "";
    for (const value of [token, wrongToken])
      for (const path of [
        "/api/v1/users",
        "/api/v1/events",
        "/api/v1/nothing",
        "/healthz",
        "/docs",
      ]) {
        const query = `access_token=${encodeURIComponent(value)}`;
        const events = await openEvents(`${gateway.admin}${path}?${query}`);
        answers += `${events.status} ${JSON.stringify(events.headers.toJSON())}`;
        events.close();
        answers += events.text;
      }
    await keep(
      `GET /api/v1/auth/sso/callback?code=${wrongToken}&state=${wrongCookie}`,
      undefined,
      {},
    );
    await keep(`POST /api/v1/services?access_token=${wrongToken}`, { name: "x" }, {});
  });

  test("in a document does not contain its secrets", async () => {
    const bodies: readonly (readonly [string, unknown])[] = [
      ["POST /api/v1/secrets", { name: "x", value: [secretValue] }],
      ["POST /api/v1/secrets", { name: "kept", value: secretValue }],
      ["POST /api/v1/secrets", { name: "not/allowed", value: secretValue }],
      ["POST /api/v1/secrets", { name: "x", value: "x", sealed_value: secretValue }],
      ["POST /api/v1/secrets", `{"name":"x","value":"${secretValue}","value":"${secretValue}"}`],
      ["POST /api/v1/secrets", `{"name":"x","value":${secretValue}}`],
      ["PATCH /api/v1/secrets/kept", { value: { deep: secretValue } }],
      ["PATCH /api/v1/sso", { client_secret: { $secret: "none", other: clientSecret } }],
      ["PATCH /api/v1/sso", { client_secret: [clientSecret] }],
      ["PATCH /api/v1/sso", { client_secret: clientSecret, role_claim: 5 }],
      ["POST /api/v1/users", { email: EMAIL, name: "x", role: "admin", password: secondPassword }],
      [
        "POST /api/v1/users",
        { email: "b@example.org", name: "x", role: "king", password: secondPassword },
      ],
      [
        "POST /api/v1/users",
        { email: "b@example.org", name: "x", role: "admin", password: { a: secondPassword } },
      ],
      [
        "POST /api/v1/users",
        { email: "b@example.org", name: "x", role: "admin", password_hash: secondPassword },
      ],
      [
        `PUT /api/v1/users/${EMAIL}/password`,
        { password: secondPassword, current_password: wrongPassword },
      ],
      [
        `PUT /api/v1/users/${EMAIL}/password`,
        { password: secondPassword, current_password: [password] },
      ],
      [`POST /api/v1/users/${EMAIL}/totp/confirm`, { code: wrongPassword.slice(0, 40) }],
      ["POST /api/v1/tokens", { name: "deploy", token: wrongToken }],
      ["PATCH /api/v1/alerts/webhook", { config: { url: [hookPath] } }],
      ["PATCH /api/v1/alerts/webhook", { config: { url: hookPath } }],
      ["PATCH /api/v1/alerts/webhook", { config: { secret: { sealed: hookKey, a: 1 } } }],
      [
        "PATCH /api/v1/alerts/webhook",
        { config: { headers: [{ name: "x y", value: hookToken }] } },
      ],
      ["PATCH /api/v1/alerts/smtp", { config: { tls: mailPassword, password: mailPassword } }],
      ["PATCH /api/v1/alerts/smtp", { config: { username: null, password: mailPassword } }],
      ["DELETE /api/v1/users/nobody@example.org", { current_password: password }],
    ];
    for (const [line, body] of bodies)
      expect([line, await keep(line, body)]).not.toEqual([line, 200]);
    await keep("POST /api/v1/sso/test", {});
  });

  test("and success as well: passwords change, and the command line creates new ones", async () => {
    const change = { password: secondPassword, current_password: password };
    expect(await keep(`PUT /api/v1/users/${EMAIL}/password`, change)).toBe(200);
    const where = ["--data-dir", gateway.dataDir];
    const reset = await runCommand(["reset-password", EMAIL, ...where]);
    session = await signIn(canaries.keep("password of the command line", reset.stdout.trim()));
    const token = await runCommand(["token", "--rotate", ...where]);
    admin = { "x-admin-token": canaries.keep("token of the command line", token.stdout.trim()) };
    expect([reset.code, token.code]).toEqual([0, 0]);
    answers += reset.stderr + token.stderr;
    expect(await keep("GET /api/v1/auth/me", undefined, admin)).toBe(200);
  });
});

describe("no secret is found", () => {
  test("in any response", async () => {
    const description = JSON.parse(await (await fetch(`${gateway.admin}/docs/json`)).text());
    const lines: string[] = Object.entries(description.paths as Record<string, object>)
      .filter(([, operations]) => "get" in operations)
      .map(([path]) => `GET ${path}`)
      .filter((line) => !/\/(?:events|stream)$/.test(line));
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) {
      const list = line.replace(/\/\{\w+\}.*/, "");
      const items = line === list ? [] : JSON.parse((await call(list)).text);
      const ids = Array.isArray(items) ? items.map(({ id, number }) => id ?? number) : [];
      for (const id of line === list ? [""] : ids)
        await keep(line.replace(/\{\w+\}/, id), undefined, admin);
    }
    expect(answers).toContain('"reset_password"');
    const events = await openEvents(`${gateway.admin}/api/v1/events`, {
      ...admin,
      "last-event-id": "1",
    });
    expect(events.status).toBe(200);
    await keep("PATCH /api/v1/secrets/kept", { description: "one more event" });
    await events.receives(1);
    answers += events.text;
    events.close();
    for (const path of ["/openapi.yaml", "/docs", "/docs/json"])
      answers += await (await fetch(`${gateway.admin}${path}`)).text();
    expect(canaries.traces("an answer", answers)).toEqual([]);
  });

  test("on the command line of the process", () => {
    const path = `/proc/${gateway.pid}/cmdline`;
    expect(canaries.traces(path, readFileSync(path))).toEqual([]);
  });

  test("in a file, while the gateway serves and when it has stopped", async () => {
    const search = () => {
      const files = filesIn(gateway.dataDir);
      const all = Buffer.concat([...files.values()]).toString("latin1");
      expect(all).toContain("$argon2id$");
      expect(all).toMatch(/"sealed_value":"sealed:1:[0-9a-f]{8}:/);
      expect(files.has("secret.key")).toBe(false);
      return [...files].flatMap(([name, content]) => canaries.traces(name, content));
    };
    expect([...filesIn(gateway.dataDir).keys()]).toContain("sluice.db-wal");
    expect(search()).toEqual([]);
    await gateway.restart();
    await gateway.kill9();
    expect(search()).toEqual([]);
  });

  test("in the log, at the most verbose level", () => {
    expect(gateway.log.some(({ message }) => message === "the configuration was changed")).toBe(
      true,
    );
    expect(canaries.traces("the log", gateway.stdout + gateway.stderr)).toEqual([]);
  });

  test("by a search that cannot find one", () => {
    const planted = canaries.make("one more");
    expect(canaries.traces("here", `x${planted}x`)).toContain("one more (as it is) in here");
    expect(canaries.traces("here", Buffer.from(planted).toString("base64"))).toContain(
      "one more (base64) in here",
    );
    expect(canaries.size).toBeGreaterThan(30);
  });
});
