// The whole product and a certified provider: a browser signs in, and nothing of its secrets is written anywhere.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { CookieBrowser } from "./cookie-browser.ts";
import { type RealProvider, signInAt, startProvider } from "./real-provider.ts";

const CALLBACK = "/api/v1/auth/sso/callback";
const PUBLIC = "https://gateway.example";
const secret = "canary-client-secret:with/strange+signs%and spaces";
const root = "root@example.com";

const people = {
  [root]: { email_verified: true, name: "Root" },
  "ann@example.com": { email_verified: true, name: "Ann", groups: ["ops"] },
  "eve@example.com": { email_verified: false, name: "Eve", groups: ["ops"] },
  "nob@example.com": { email_verified: true, name: "Nob", groups: [] },
};

let gateway: Gateway;
let provider: RealProvider;
let cookie = "";

/** Calls the API as the first admin. */
const admin = async (method: string, path: string, body?: unknown) => {
  const response = await gateway.api(method, `/api/v1${path}`, body, { cookie });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
};

const clients = [
  { client_id: "basic", client_secret: secret, token_endpoint_auth_method: "client_secret_basic" },
  { client_id: "post", client_secret: secret, token_endpoint_auth_method: "client_secret_post" },
  { client_id: "public", token_endpoint_auth_method: "none" },
];

const plain = {
  enabled: true,
  client_id: "basic",
  client_secret: secret,
  scopes: ["openid", "email", "profile", "groups"],
  role_claim: "groups",
  role_map: { ops: "editor" },
  auto_provision: true,
};
const configure = (fields: object = {}) =>
  admin("PUT", "/sso", { issuer: provider.issuer, ...plain, ...fields });

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  const redirects = [`${gateway.admin}${CALLBACK}`, `${PUBLIC}${CALLBACK}`];
  provider = await startProvider(people, clients, redirects);
  await gateway.ok("PUT", "/api/v1/sso", { issuer: provider.issuer, ...plain });
  await gateway.ok("POST", "/api/v1/users", { email: root, name: "Root", role: "admin" });
  const end = await signIn(new CookieBrowser(), { email: root });
  cookie = end.cookies[0]?.split(";")[0] ?? "";
});
afterAll(async () => {
  provider.stop();
  await gateway.stop();
});

interface Visit {
  email: string;
  redirect?: string;
  /** Where the browser believes the gateway to be. */
  at?: string;
}

async function signIn(browser: CookieBrowser, { email, redirect, at = gateway.admin }: Visit) {
  const query = redirect === undefined ? "" : `?redirect=${encodeURIComponent(redirect)}`;
  const callback = `${at}${CALLBACK}`;
  const start = await browser.visit(`${at}/api/v1/auth/sso/start${query}`);
  const back = await signInAt(browser, start.location ?? "", { email, callback });
  return await browser.visit(back.location ?? "");
}

const visitors = () => ({ ann: new CookieBrowser(), other: new CookieBrowser() });

describe("a sign-in", () => {
  test("starts at the gateway, passes the provider and ends at its destination", async () => {
    const { ann } = visitors();
    const end = await signIn(ann, { email: "ann@example.com", redirect: "/routes?tag=x#top" });
    expect(end).toMatchObject({ status: 302, location: `${gateway.admin}/routes?tag=x#top` });
    expect(end.cookies).toEqual([
      expect.stringMatching(
        /^sluice_session_[0-9a-f]{8}=[\w-]{43}; HttpOnly; Max-Age=604800; Path=\/; SameSite=Lax$/,
      ),
      expect.stringMatching(
        /^sluice_session_[0-9a-f]{8}_sso=; HttpOnly; Max-Age=0; Path=\/api\/v1\/auth\/sso; SameSite=Lax$/,
      ),
    ]);
    expect(ann.cookiesFor(`${gateway.admin}${CALLBACK}`)).toEqual([
      expect.stringMatching(/^sluice_session_[0-9a-f]{8}$/),
    ]);
    const me = await ann.visit(`${gateway.admin}/api/v1/auth/me`);
    expect(JSON.parse(me.text)).toMatchObject({
      user: { email: "ann@example.com", name: "Ann", role: "editor" },
      role: "editor",
      method: "session",
    });
    const users = await admin("GET", "/users?q=ann");
    expect(users).toMatchObject([{ email: "ann@example.com", has_password: false }]);
  });

  test.each(clients)("works with $token_endpoint_auth_method", async (client) => {
    await configure({
      client_id: client.client_id,
      client_secret: client.client_secret ?? null,
      token_auth: client.client_id === "post" ? "post" : "basic",
    });
    const report = await admin("POST", "/sso/test");
    expect(report).toMatchObject({ ok: true });
    const { ann } = visitors();
    const end = await signIn(ann, { email: "ann@example.com" });
    expect(end.location).toBe(`${gateway.admin}/`);
    await configure();
  });

  test("a second time at the same provider needs no password there", async () => {
    const { ann } = visitors();
    await signIn(ann, { email: "ann@example.com" });
    const start = await ann.visit(`${gateway.admin}/api/v1/auth/sso/start`);
    const isBack = (url: string) => url.startsWith(gateway.admin);
    const back = await ann.follow(start.location ?? "", isBack);
    expect((await ann.visit(back.location ?? "")).location).toBe(`${gateway.admin}/`);
  });

  test("works behind public_url, with cookies for HTTPS only", async () => {
    await admin("PATCH", "/settings", { public_url: PUBLIC });
    const browser = new CookieBrowser({ [PUBLIC]: gateway.admin });
    const end = await signIn(browser, { email: "ann@example.com", redirect: "/x", at: PUBLIC });
    expect(end.location).toBe(`${PUBLIC}/x`);
    for (const header of end.cookies) {
      expect(header).toStartWith("__Host-sluice_session_");
      expect(header.split("; ")).toContain("Secure");
    }
    await admin("PATCH", "/settings", { public_url: null });
  });

  test("that was started in another browser ends with a message and without a session", async () => {
    const { ann, other } = visitors();
    const callback = `${gateway.admin}${CALLBACK}`;
    const start = await ann.visit(`${gateway.admin}/api/v1/auth/sso/start`);
    const back = await signInAt(ann, start.location ?? "", { email: "ann@example.com", callback });
    const end = await other.visit(back.location ?? "");
    expect(end).toMatchObject({
      status: 302,
      location: `${gateway.admin}/?sso_error=invalid_state`,
    });
    expect(other.cookiesFor(gateway.admin)).toEqual([]);
  });

  const refused = [
    { email: "eve@example.com", code: "email_unverified" },
    { email: "nob@example.com", code: "unknown_role" },
  ];
  test.each(refused)("of $email ends with $code", async ({ email, code }) => {
    const browser = new CookieBrowser();
    const end = await signIn(browser, { email });
    expect(end.location).toBe(`${gateway.admin}/?sso_error=${code}`);
    expect(browser.cookiesFor(gateway.admin)).toEqual([]);
  });

  test("that is cancelled at the provider ends with a message", async () => {
    const { ann } = visitors();
    const start = await ann.visit(`${gateway.admin}/api/v1/auth/sso/start`);
    const page = await ann.follow(start.location ?? "");
    const abort = /href="([^"]+\/abort)"/.exec(page.text)?.[1] ?? "";
    const isBack = (url: string) => url.startsWith(gateway.admin);
    const back = await ann.follow(new URL(abort, page.url).href, isBack);
    const end = await ann.visit(back.location ?? "");
    expect(end.location).toBe(`${gateway.admin}/?sso_error=access_denied`);
  });
});

describe("the API", () => {
  test("refuses destinations outside the gateway", async () => {
    for (const redirect of ["https://evil.example/", "//evil.example", "/\\evil.example"]) {
      const query = `redirect=${encodeURIComponent(redirect)}`;
      const answer = await gateway.api("GET", `/api/v1/auth/sso/start?${query}`);
      expect(answer.status).toBe(400);
      expect((await answer.json()) as object).toEqual({
        error: "redirect: must be a path of this gateway, such as /routes",
      });
    }
  });

  test("refuses to start while single sign-on is off, and shows that in the status", async () => {
    expect(await gateway.ok("GET", "/api/v1/admin/status")).toMatchObject({
      sso_enabled: true,
      sso_label: "Single sign-on",
    });
    await admin("PATCH", "/sso", { enabled: false });
    const answer = await gateway.api("GET", "/api/v1/auth/sso/start");
    expect(answer.status).toBe(400);
    expect((await gateway.ok("GET", "/api/v1/admin/status"))["sso_enabled"]).toBe(false);
    await configure();
  });

  test("shows and changes the settings to admins only", async () => {
    const { ann } = visitors();
    await signIn(ann, { email: "ann@example.com" });
    for (const path of ["/api/v1/sso", "/api/v1/audit"])
      expect((await ann.visit(`${gateway.admin}${path}`)).status).toBe(403);
    expect((await gateway.api("GET", "/api/v1/sso")).status).toBe(401);
    expect((await gateway.api("POST", "/api/v1/sso/test")).status).toBe(401);
    const settings = await admin("GET", "/sso");
    expect(settings).toMatchObject({ client_secret_set: true, client_id: "basic" });
    expect(settings).not.toHaveProperty("client_secret");
  });
});

test("neither the log, nor the database, nor the audit log holds a secret, a code or a token", async () => {
  const { ann } = visitors();
  const end = await signIn(ann, { email: "ann@example.com" });
  const code = new URL(end.url).searchParams.get("code") ?? "-";
  const session = /^sluice_session_\w+=([\w-]+)/.exec(end.cookies[0] ?? "")?.[1] ?? "-";
  const audit = await admin("GET", "/audit");
  expect(audit).toContainEqual(
    expect.objectContaining({ actor: "ann@example.com", action: "login", result: "ok" }),
  );
  await gateway.restart();
  const written = [gateway.stderr, JSON.stringify(audit), ...filesOf(gateway.dataDir)];
  for (const text of written)
    for (const canary of ["canary", code, session]) expect(text.includes(canary)).toBe(false);
});

function filesOf(directory: string): string[] {
  const database = new Database(join(directory, "sluice.db"));
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
  return readdirSync(directory)
    .filter((name) => name.startsWith("sluice.db"))
    .map((name) => readFileSync(join(directory, name), "latin1"));
}
