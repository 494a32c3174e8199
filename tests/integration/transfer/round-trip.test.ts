// A gateway exported and imported by another one: the same bytes result, and users can still sign in.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { accessTable } from "../../../src/api/access.ts";
import { adminParts } from "../../../src/control/admin-parts.ts";
import { decryptUnder } from "../../../src/crypto/passphrase-box.ts";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { collectionNames, singletonNames } from "../../../src/model/gateway-config.ts";
import { fromBase32 } from "../../support/base32.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { quietPort } from "../../support/quiet-port.ts";

const PASSWORD = "correct horse battery";
const PASSPHRASE = "staple of the whole gateway";
const CANARY = "Canary-of-the-round-trip";
const ADMIN = { email: "a@a.example", name: "A", role: "admin", password: PASSWORD };

let [first, second]: [Gateway | null, Gateway | null] = [null, null];
let [plain, whole, viewed, adminToken] = ["", "", "", ""];
let totpKey: Uint8Array = new Uint8Array();

const running = (gateway: Gateway | null) =>
  gateway ??
  (() => {
    throw new Error("not started");
  })();

async function signIn(gateway: Gateway, totp?: string): Promise<Record<string, string>> {
  const body = { email: ADMIN.email, password: PASSWORD, ...(totp === undefined ? {} : { totp }) };
  const response = await gateway.api("POST", "/api/v1/auth/login", body);
  expect([response.status, await response.text()]).toMatchObject([200, expect.anything()]);
  return { cookie: response.headers.get("set-cookie")?.split(";")[0] ?? "" };
}

async function call(gateway: Gateway, line: string, body?: unknown, headers = {}): Promise<string> {
  const [method = "", path = ""] = line.split(" ");
  const response = await gateway.api(method, `/api/v1${path}`, body, headers);
  const text = await response.text();
  expect([line, response.status, text]).toEqual([line, 200, text]);
  return text;
}

const exportOf = (gateway: Gateway, query: string, headers = {}) =>
  call(gateway, `GET /export?${query}`, undefined, headers);

const decrypted = async (text: string) =>
  await decryptUnder(PASSPHRASE, JSON.parse(text).encrypted);

/** Of every kind of object at least one is there. */
async function makeTheRest(gateway: Gateway): Promise<void> {
  await call(gateway, "POST /consumers", { username: "ada", groups: ["staff"] });
  for (const type of ["key", "basic", "jwt", "hmac"])
    await call(gateway, "POST /consumers/ada/credentials", {
      type,
      secret: `${type}-${CANARY}-of-a-consumer`,
      ...(type === "key" ? {} : { identifier: `ada-${type}` }),
    });
  await call(gateway, "POST /plugins", {
    name: "oidc",
    label: "login",
    route_id: "blog",
    config: { issuer: "https://x.test", client_id: "x", client_secret: `${CANARY} plugin` },
  });
  await call(gateway, "POST /plugins", {
    name: "ldap-auth",
    route_id: "blog",
    config: {
      url: "ldaps://x.test",
      base_dn: "dc=x",
      bind_dn: "cn=x",
      bind_password: { $secret: "kept" },
    },
  });
  await call(gateway, "POST /acme/accounts", {
    name: "ca",
    directory_url: "https://127.0.0.1:9/dir",
    terms_agreed: true,
    eab_key_id: "key",
    eab_hmac_key: `${CANARY}-eab`,
    enabled: false,
  });
  await call(gateway, "POST /dns-providers", {
    name: "zone",
    type: "cloudflare",
    enabled: false,
    config: { api_token: `${CANARY}-of-zones` },
  });
  await call(gateway, "POST /applications", {
    name: "wiki",
    domains: ["wiki.test"],
    upstream: "http://127.0.0.1:9",
    https: { mode: "off" },
  });
  await call(gateway, "POST /alerts", {
    name: "ops",
    type: "webhook",
    events: ["target_down"],
    service_ids: ["web"],
    config: { url: "http://127.0.0.1:9/", secret: `${CANARY} alert` },
    enabled: false,
  });
}

beforeAll(async () => {
  first = await startGateway({ workers: 1 });
  const gateway = first;
  await call(gateway, "POST /services", { name: "web", targets: [{ host: "127.0.0.1", port: 9 }] });
  await call(gateway, "POST /routes", { name: "shop", service_id: "web", hosts: ["shop.test"] });
  await call(gateway, "POST /routes", { name: "blog", service_id: "web", hosts: ["blog.test"] });
  await call(gateway, "POST /certificates", {
    name: "own",
    source: "self_signed",
    domains: ["shop.test"],
  });
  await call(gateway, "POST /services", { name: "db", protocol: "tcp" });
  const stream = {
    name: "db",
    listen_address: "127.0.0.1",
    listen_port: quietPort(),
    service_id: "db",
  };
  await call(gateway, "POST /stream-routes", stream);
  await call(gateway, "POST /secrets", { name: "kept", value: `${CANARY} value` });
  await call(gateway, "PATCH /sso", {
    client_secret: `${CANARY} client`,
    issuer: "https://x.test",
  });
  await makeTheRest(gateway);
  await call(gateway, "POST /users", ADMIN);
  const session = await signIn(gateway);
  await call(gateway, "POST /tokens", { name: "deploy", role: "viewer" }, session);
  adminToken = JSON.parse(await call(gateway, "POST /admin/token", undefined, session)).token;
  const setup = await call(
    gateway,
    `POST /users/${ADMIN.email}/totp`,
    { current_password: PASSWORD },
    session,
  );
  totpKey = fromBase32(JSON.parse(setup).secret);
  const code = hotp(totpKey, stepAt(Date.now()) - 1);
  await call(gateway, `POST /users/${ADMIN.email}/totp/confirm`, { code }, session);
  const viewer = JSON.parse(
    await call(gateway, "POST /tokens", { name: "v", role: "viewer" }, session),
  );

  plain = await exportOf(gateway, "format=yaml", session);
  viewed = await exportOf(gateway, "", { authorization: `Bearer ${viewer.token}` });
  whole = await exportOf(gateway, "secrets=1", { ...session, "x-passphrase": PASSPHRASE });
  // Both have the same listeners.
  await gateway.stop();
  second = await startGateway({ workers: 1 });
  const imported = await call(second, "POST /import?mode=replace", whole, {
    "x-passphrase": PASSPHRASE,
  });
  expect(JSON.parse(imported).changes.length).toBeGreaterThan(8);
});
afterAll(() => second?.stop());

describe("an encrypted document", () => {
  test("makes another gateway equal, byte for byte", async () => {
    const gateway = running(second);
    const session = await signIn(gateway, hotp(totpKey, stepAt(Date.now()) + 1));
    expect(await exportOf(gateway, "format=yaml", session)).toBe(plain);
    const again = await exportOf(gateway, "secrets=1", { ...session, "x-passphrase": PASSPHRASE });
    // A code was used meanwhile.
    const withoutStep = (text: string) => text.replace(/"last_step":\s*\d+/, "");
    expect(withoutStep(await decrypted(again))).toBe(withoutStep(await decrypted(whole)));
    const all = JSON.parse(await decrypted(whole));
    for (const name of [...collectionNames, ...singletonNames]) expect(all).toHaveProperty(name);
    for (const name of collectionNames) expect([name, all[name].length > 0]).toEqual([name, true]);
  });

  test("restores passwords, second factors and tokens, and ends open sessions", async () => {
    const gateway = running(second);
    const { email, password } = ADMIN;
    const withoutCode = await gateway.api("POST", "/api/v1/auth/login", { email, password });
    expect(withoutCode.status).toBe(401);
    const headers = { authorization: `Bearer ${adminToken}` };
    expect(JSON.parse(await call(gateway, "GET /auth/me", undefined, headers)).role).toBe("admin");
    expect((await gateway.api("GET", "/api/v1/services")).status).toBe(401);
  });

  test("serves on its listeners", async () => {
    const { listeners } = Bun.YAML.parse(plain) as { listeners: { name: string; port: number }[] };
    const port = listeners.find(({ name }) => name === "http")?.port;
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { host: "shop.test" } });
    expect(answer.status).toBe(502);
  });

  test("reveals nothing without the passphrase", () => {
    expect(whole).not.toContain("shop.test");
    expect(JSON.parse(whole)).toEqual({
      format: 1,
      program: expect.any(String),
      encrypted: expect.anything(),
    });
  });

  test.each([
    { why: "another passphrase", passphrase: "x".repeat(12), change: {} },
    { why: "a changed cost", passphrase: PASSPHRASE, change: { n: 65_536 } },
    { why: "changed contents", passphrase: PASSPHRASE, change: { data: "AAAA" } },
  ])("is refused with $why", async ({ passphrase, change }) => {
    const document = JSON.parse(whole);
    Object.assign(document.encrypted, change);
    const headers = { "x-admin-token": adminToken, "x-passphrase": passphrase };
    const answer = await running(second).api("POST", "/api/v1/import", document, headers);
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: "the passphrase is wrong, or the document was changed" },
    ]);
  });

  test.each([
    { why: "no passphrase", headers: {} },
    { why: "a short passphrase", headers: { "x-passphrase": "elevenchars" } },
  ])("is not created with $why", async ({ headers }) => {
    const all = { "x-admin-token": adminToken, ...headers };
    const answer = await running(second).api("GET", "/api/v1/export?secrets=1", undefined, all);
    expect([answer.status, await answer.text()]).toEqual([
      400,
      '{"error":"X-Passphrase: must be a passphrase of 12 to 1024 characters"}',
    ]);
  });

  test("cannot exhaust memory", async () => {
    const document = JSON.parse(whole);
    document.encrypted.n = 2 ** 30;
    const headers = { "x-admin-token": adminToken, "x-passphrase": PASSPHRASE };
    const answer = await running(second).api("POST", "/api/v1/import", document, headers);
    expect([answer.status, await answer.text()]).toEqual([
      400,
      '{"error":"encrypted.n: must be an integer from 16384 to 262144"}',
    ]);
  });
});

describe("a plain document", () => {
  test("contains no secret, no user and no token", () => {
    for (const text of [plain, viewed]) {
      for (const word of [CANARY, "sealed:1:", "argon2", ADMIN.email, "deploy", "BEGIN PRIVATE"])
        expect([word, text.includes(word)]).toEqual([word, false]);
    }
    expect(plain).toContain('sealed_value: "***"');
  });

  test("changes nothing where it was made", async () => {
    const headers = { "x-admin-token": adminToken, "content-type": "application/yaml" };
    for (const mode of ["merge", "replace"]) {
      const answer = await call(running(second), `POST /import?mode=${mode}`, plain, headers);
      expect(JSON.parse(answer)).toEqual({ changes: [] });
    }
  });

  test("shows viewers what they may read, and nothing else", async () => {
    const document = JSON.parse(viewed);
    for (const part of adminParts) expect(document).not.toHaveProperty(part);
    const hidden = accessTable
      .filter(({ path, methods }) => /^\/api\/v1\/[\w-]+$/.test(path) && methods["GET"] === "admin")
      .map(({ path }) => path.slice("/api/v1/".length).replaceAll("-", "_"))
      .filter((name) => [...collectionNames, ...singletonNames].includes(name as never));
    expect(hidden.toSorted()).toEqual([...adminParts].toSorted());
  });

  test("with secrets is refused to those below admin", async () => {
    const made = await call(
      running(second),
      "POST /tokens",
      { name: "e", role: "editor" },
      { "x-admin-token": adminToken },
    );
    const headers = {
      authorization: `Bearer ${JSON.parse(made).token}`,
      "x-passphrase": PASSPHRASE,
    };
    const answer = await running(second).api("GET", "/api/v1/export?secrets=1", undefined, headers);
    expect([answer.status, await answer.json()]).toEqual([
      403,
      { error: "the role admin is required" },
    ]);
  });
});

test("exporting secrets is audited", async () => {
  const log = JSON.parse(
    await call(running(second), "GET /audit?action=export", undefined, {
      "x-admin-token": adminToken,
    }),
  );
  expect(log).toMatchObject([{ action: "export", kind: "configuration", actor: ADMIN.email }]);
});

test("an import cannot remove the last admin", async () => {
  const headers = { "x-admin-token": adminToken };
  const document = { format: 1, users: [] };
  const answer = await running(second).api(
    "POST",
    "/api/v1/import?mode=replace",
    document,
    headers,
  );
  expect([answer.status, await answer.json()]).toEqual([
    409,
    { error: expect.stringContaining("the last admin cannot be deleted, demoted or disabled") },
  ]);
});
