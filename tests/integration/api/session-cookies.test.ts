// Which of several session cookies is valid, and what happens to the others; names over HTTP, HTTPS and restarts.
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { expectOk, PASSWORD, ROOT, usePeople } from "./people.ts";

const people = usePeople();

/** Signs in and returns the values of Set-Cookie. */
async function logIn(email: string, cookie?: string): Promise<string[]> {
  const headers: Record<string, string> = cookie === undefined ? {} : { cookie };
  const body = { email, password: PASSWORD };
  const response = await people.gateway.api("POST", "/api/v1/auth/login", body, headers);
  if (response.status !== 200) throw new Error(`${response.status}`);
  return response.headers.getSetCookie();
}
const pairOf = (setCookie: string | undefined) => setCookie?.split(";")[0] ?? "";
const openSession = async (email: string) => pairOf((await logIn(email))[0]);

/** The user of these cookies, and which cookies the response clears. */
async function whoIs(cookie: string) {
  const response = await people.gateway.api("GET", "/api/v1/auth/me", undefined, { cookie });
  const { user, error } = (await response.json()) as {
    user?: { email: string };
    error?: string;
  };
  const takenBack = response.headers.getSetCookie();
  return { status: response.status, who: user?.email ?? error, takenBack };
}

const deadValue = "D".repeat(43);
const taken = (name: string) => `${name}=; HttpOnly; Max-Age=0; Path=/; SameSite=Lax`;

describe("of several session cookies", () => {
  test("invalid ones are ignored in any position", async () => {
    const session = await openSession(ROOT.email);
    const name = session.split("=")[0] ?? "";
    const dead = [`${name}=${deadValue}`, `sluice_session=${deadValue}`, `__Host-${name}=x`];
    for (const cookies of [
      [session],
      [...dead, session],
      [session, ...dead],
      [`${name}=`, session, `${name}=""`],
      [session, session],
    ])
      expect(await whoIs(cookies.join("; "))).toEqual({
        status: 200,
        who: ROOT.email,
        takenBack: [],
      });
    for (const cookies of [dead, [`${name}=${deadValue}`]])
      expect(await whoIs(cookies.join("; "))).toEqual({
        status: 401,
        who: "the session has ended",
        takenBack: [],
      });
  });

  test("two of one user are as good as one", async () => {
    const [one, two] = [await openSession(ROOT.email), await openSession(ROOT.email)];
    expect(await whoIs(`${one}; ${two}`)).toMatchObject({ status: 200, who: ROOT.email });
  });

  test("two of different users are rejected, cleared and revoked", async () => {
    await people.create("planter");
    for (const order of [0, 1]) {
      const admin = await openSession(ROOT.email);
      const planted = await openSession("planter@a.example");
      const name = admin.split("=")[0] ?? "";
      const former = planted.replace(name, "sluice_session");
      const cookies = order === 0 ? [admin, former] : [planted, admin];
      expect(await whoIs(cookies.join("; "))).toEqual({
        status: 401,
        who: "the request brought sessions of several users; they have ended, sign in again",
        takenBack: order === 0 ? [taken(name), taken("sluice_session")] : [taken(name)],
      });
      for (const cookie of [admin, planted]) expect((await whoIs(cookie)).status).toBe(401);
    }
    const ended = (await expectOk(people.root("GET /audit?action=logout"))) as {
      object_name: string;
      detail: { reason?: string } | null;
    }[];
    const reason = "one request brought sessions of several users";
    const names = ended.filter(({ detail }) => detail?.reason === reason);
    expect(new Set(names.map((entry) => entry.object_name))).toEqual(
      new Set([ROOT.email, "planter@a.example"]),
    );
  });

  test("that of a disabled user is no session", async () => {
    const { id } = await people.create("gone");
    const gone = await openSession("gone@a.example");
    await expectOk(people.root(`PATCH /users/${id}`, { enabled: false }));
    const root = await openSession(ROOT.email);
    expect(await whoIs(`${gone}; ${root}`)).toMatchObject({ status: 200, who: ROOT.email });
  });

  test("a token in a header overrides all of them", async () => {
    await people.create("both");
    const cookies = [await openSession(ROOT.email), await openSession("both@a.example")];
    const { token } = await expectOk(people.root("POST /tokens", { name: "both", role: "viewer" }));
    const headers = { cookie: cookies.join("; "), authorization: `Bearer ${token}` };
    const me = await people.gateway.api("GET", "/api/v1/auth/me", undefined, headers);
    expect((await me.json()) as object).toMatchObject({ method: "token", role: "viewer" });
    expect((await whoIs(cookies[0] ?? "")).status).toBe(200);
  });

  test("those in several header fields are all read", async () => {
    await people.create("fields");
    const cookies = [await openSession(ROOT.email), await openSession("fields@a.example")];
    const lines = cookies.map((cookie) => `Cookie: ${cookie}\r\n`).join("");
    const port = Number(new URL(people.gateway.admin).port);
    const { outcome } = await exchange(
      `GET /api/v1/auth/me HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines}\r\n`,
      { port },
    );
    expect(outcome).toBe("401");
  });
});

describe("signing in", () => {
  test("clears a valid cookie under the former name", async () => {
    const [, value = ""] = (await openSession(ROOT.email)).split("=");
    const [fresh, ...others] = await logIn(ROOT.email, `sluice_session=${value}; a=1`);
    expect(fresh).toMatch(/^sluice_session_[0-9a-f]{8}=[\w-]{43}; HttpOnly/);
    expect(others).toEqual([taken("sluice_session")]);
    expect(await logIn(ROOT.email, "sluice_session=of-a-gateway-on-another-port")).toHaveLength(1);
    expect(await logIn(ROOT.email, pairOf(fresh))).toHaveLength(1);
  });

  test("over HTTPS gives a name that no other host of the domain can set", async () => {
    await people.create("planted");
    const plain = await openSession("planted@a.example");
    const name = plain.split("=")[0] ?? "";
    await expectOk(people.root("PATCH /settings", { public_url: "https://gate.example" }));
    try {
      const [set = "", ...others] = await logIn(ROOT.email, plain);
      expect(set).toMatch(
        /^__Host-sluice_session_[0-9a-f]{8}=[\w-]{43}; HttpOnly; Max-Age=604800; Path=\/; SameSite=Lax; Secure$/,
      );
      expect(others).toEqual([taken(name)]);
      expect(await whoIs(pairOf(set))).toMatchObject({ status: 200, who: ROOT.email });
      // The same value under a name without the __Host- prefix is no session.
      const [, value = ""] = pairOf(set).split("=");
      for (const other of [name, "sluice_session"])
        expect((await whoIs(`${other}=${value}`)).status).toBe(401);
      expect((await whoIs(`__Host-${plain}`)).status).toBe(401);
      const out = await people.gateway.api("POST", "/api/v1/auth/logout", undefined, {
        cookie: `${pairOf(set)}; ${name}=${deadValue}`,
      });
      expect(out.headers.getSetCookie()).toEqual([
        `${taken(`__Host-${name}`)}; Secure`,
        taken(name),
      ]);
      // Sessions from before the address change stay valid.
      expect((await whoIs(plain)).status).toBe(200);
    } finally {
      await expectOk(people.root("PATCH /settings", { public_url: null }));
    }
  });
});

describe("the name", () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-cookies-"));
  const gateways: Gateway[] = [];
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  const start = async (dataDir?: string) => {
    const gateway = await startGateway({
      workers: 1,
      ...(dataDir === undefined ? {} : { dataDir }),
    });
    gateways.push(gateway);
    return gateway;
  };
  const sessionAt = async (gateway: Gateway) => {
    const body = { email: ROOT.email, password: PASSWORD };
    const response = await gateway.api("POST", "/api/v1/auth/login", body);
    return pairOf(response.headers.getSetCookie()[0]);
  };

  test("is unique per installation, and survives restarts and restores", async () => {
    const [first, second] = [await start(), await start()];
    for (const gateway of [first, second]) await gateway.ok("POST", "/api/v1/users", ROOT);
    const session = await sessionAt(first);
    const [name] = session.split("=");
    expect((await sessionAt(second)).split("=")[0]).not.toBe(name);

    await first.restart();
    const me = (gateway: Gateway) =>
      gateway.api("GET", "/api/v1/auth/me", undefined, { cookie: session });
    expect((await me(first)).status).toBe(200);

    const copy = join(directory, "copy.db");
    const made = await runCommand(["backup", copy, "--data-dir", first.dataDir]);
    expect([made.code, made.stderr]).toEqual([0, made.stderr]);
    await first.stop();
    const restored = join(directory, "restored");
    mkdirSync(restored, { mode: 0o700 });
    copyFileSync(copy, join(restored, "sluice.db"));
    const third = await start(restored);
    expect((await me(third)).status).toBe(200);
    expect((await sessionAt(third)).split("=")[0]).toBe(name);
  });
});
