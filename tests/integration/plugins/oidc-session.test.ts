// Sessions of oidc on a real data plane: what the application receives, where they are stored and when they end.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { Jar, World } from "./oidc-world.ts";

let world: World;

beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());
beforeEach(() => world.reset());

describe("a session", () => {
  test("returns to the page and identifies the user to the application", async () => {
    const jar = new Jar();
    const done = await world.signIn(jar, "/page?a=b%20c");
    expect(done.status).toBe(302);
    expect(done.headers.get("location")).toBe("/page?a=b%20c");
    expect([...jar.cookies.keys()]).toEqual(["sluice_app"]);
    const { status, seen } = await world.get("/page", jar, {
      "X-Auth-User": "root",
      X_Auth_User: "root",
      Cookie: "own=1",
    });
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({
      "x-auth-user": "ann@example.com",
      "x-auth-name": "Ann",
      "x-auth-subject": "subject-1",
      cookie: "own=1",
    });
    for (const name of ["authorization", "x_auth_user", "x-auth-groups"])
      expect(seen?.headers).not.toHaveProperty(name);
  });

  test("has an encrypted cookie", async () => {
    const jar = new Jar();
    await world.signIn(jar);
    const text = Buffer.from(jar.cookies.get("sluice_app")?.slice(2) ?? "", "base64url").toString();
    for (const word of ["ann", "canary", "subject-1"]) expect(text).not.toContain(word);
  });

  test("over https has cookies that no other host can set", async () => {
    await world.scene.apply({ listener: { trusted_proxies: ["127.0.0.1"] } });
    const https = { "X-Forwarded-Proto": "https" };
    const jar = new Jar();
    const done = await world.signIn(jar, "/", https);
    const cookie = done.headers
      .getSetCookie()
      .find((line) => line.startsWith("__Host-sluice_app="));
    expect(cookie).toEndWith("; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure");
    expect((await world.get("/", jar, https)).status).toBe(200);
    // Without the prefix, any host of the domain could have set it.
    const value = jar.cookies.get("__Host-sluice_app") ?? "";
    expect((await world.scene.get("/", { ...https, Cookie: `sluice_app=${value}` })).status).toBe(
      302,
    );
    await world.scene.apply({ listener: { trusted_proxies: [] } });
  });

  test.each([
    [
      "changed",
      (value: string) => `${value.slice(0, 40)}${value[40] === "A" ? "B" : "A"}${value.slice(41)}`,
    ],
    ["cut", (value: string) => value.slice(0, -1)],
    ["longer", (value: string) => `${value}AAAA`],
    ["empty", () => ""],
    ["of several parts that are not there", (value: string) => `3${value.slice(1)}`],
    ["no base64", () => "1.%%%"],
    ["of the login", (_: string, jar: Jar) => jar.cookies.get("pending") ?? ""],
  ])("that is %s is invalid", async (_, bend) => {
    const jar = new Jar();
    await world.begin("/", jar);
    const [, pending = ""] = [...jar.cookies][0] ?? [];
    await world.signIn(jar);
    jar.cookies.set("pending", pending);
    const value = bend(jar.cookies.get("sluice_app") ?? "", jar);
    expect((await world.scene.get("/", { Cookie: `sluice_app=${value}` })).status).toBe(302);
  });

  test("is split when it is long, and surplus parts of a longer one are deleted", async () => {
    await world.configure({ headers: { "X-Auth-Groups": "groups" } });
    const groups = Array.from({ length: 150 }, (_, at) => `group-${at}-${"x".repeat(15)}`);
    world.provider.lie = { claims: { groups } };
    const jar = new Jar();
    const done = await world.signIn(jar);
    expect([...jar.cookies.keys()]).toEqual(["sluice_app", "sluice_app.1"]);
    for (const line of done.headers.getSetCookie()) expect(line.length).toBeLessThan(4096);
    expect((await world.get("/", jar)).seen?.headers["x-auth-groups"]).toBe(groups.join(","));
    jar.cookies.set("sluice_app", "1.x");
    jar.cookies.delete("app");
    world.provider.lie = {};
    await world.signIn(jar);
    expect([...jar.cookies.keys()]).toEqual(["sluice_app"]);
    world.provider.lie = { claims: { groups: Array(2000).fill("a group of many") } };
    const tooLong = await world.signIn(new Jar());
    expect(tooLong.status).toBe(503);
  });

  test("ends when unused", async () => {
    await world.configure({ session: { idle: 1 } });
    const jar = new Jar();
    await world.signIn(jar);
    expect((await world.get("/", jar)).status).toBe(200);
    const cookie = new Map(jar.cookies).get("sluice_app");
    await eventually(
      async () => (await world.scene.get("/", { Cookie: `sluice_app=${cookie}` })).status === 302,
    );
  });

  test("is extended by use, up to its maximum", async () => {
    await world.configure({ session: { idle: 2, absolute: 3 } });
    const jar = new Jar();
    await world.signIn(jar);
    let renewals = 0;
    await eventually(async () => {
      const { status, headers } = await world.get("/", jar);
      if (headers.getSetCookie().some((line) => line.startsWith("sluice_app="))) renewals++;
      return status === 302;
    });
    expect(renewals).toBeGreaterThan(0);
  });

  test("adds its cookie to those of the application", async () => {
    await world.configure({ session: { idle: 5, absolute: 60 } });
    const jar = new Jar();
    await world.signIn(jar);
    let cookies: string[] = [];
    await eventually(async () => {
      cookies = (await world.get("/", jar)).headers
        .getSetCookie()
        .map((line) => line.split("=")[0] ?? "");
      return cookies.length === 2;
    });
    expect(cookies.sort()).toEqual(["app", "sluice_app"]);
  });

  test("of another issuer, client or list of claims is invalid", async () => {
    const jar = new Jar();
    await world.signIn(jar);
    await world.configure({ allowed_groups: [] });
    expect((await world.get("/", jar)).status).toBe(200);
    await world.configure({ client_id: "another" });
    expect((await world.scene.get("/", jar.header)).status).toBe(302);
    await world.configure({ required_claims: { vip: true } });
    expect((await world.scene.get("/", jar.header)).status).toBe(302);
  });

  test("requires the configured claims and one of the groups", async () => {
    const jar = new Jar();
    await world.configure({ groups_claim: "realm_access.roles", allowed_groups: ["staff", "ops"] });
    world.provider.lie = { claims: { realm_access: { roles: ["ops"] } } };
    await world.signIn(jar);
    expect((await world.get("/", jar)).status).toBe(200);
    world.provider.lie = { claims: { realm_access: { roles: "x" } } };
    const other = new Jar();
    await world.signIn(other);
    const refused = await world.get("/", other);
    expect(refused).toMatchObject({ status: 403, seen: null });
    await world.configure({ required_claims: { email_verified: true, hd: "example.com" } });
    for (const [hd, status] of [
      ["example.com", 200],
      [["a", "example.com"], 200],
      ["evil", 403],
      [undefined, 403],
    ] as const) {
      world.provider.lie = { claims: { hd } };
      const person = new Jar();
      await world.signIn(person);
      expect((await world.get("/", person)).status).toBe(status);
    }
  });

  test("percent-encodes names that are invalid field values", async () => {
    world.provider.lie = {
      claims: { name: "Łukasz 100%\r\nX: 1 \ud800", groups: ["a,b", "ü", 3] },
    };
    const jar = new Jar();
    await world.signIn(jar);
    const { seen } = await world.get("/", jar);
    expect(seen?.headers["x-auth-name"]).toBe("%C5%81ukasz 100%25%0D%0AX: 1 %EF%BF%BD");
    expect(seen?.headers["x-auth-groups"]).toBe("a%2Cb,%C3%BC,3");
    expect(seen?.headers).not.toHaveProperty("x");
  });

  test("reads missing claims from the userinfo endpoint, for the same subject only", async () => {
    world.provider.lie = {
      claims: { email: undefined },
      userinfo: { sub: "subject-1", email: "info@example.com", name: "Other" },
    };
    const jar = new Jar();
    await world.signIn(jar);
    expect((await world.get("/", jar)).seen?.headers).toMatchObject({
      "x-auth-user": "info@example.com",
      "x-auth-name": "Ann",
    });
    world.provider.lie = { claims: { email: undefined }, userinfo: { sub: "another", email: "e" } };
    expect((await world.signIn(new Jar())).status).toBe(403);
  });

  test("with SameSite=Strict redirects through a page of its own", async () => {
    await world.configure({ session: { same_site: "Strict" } });
    const jar = new Jar();
    const done = await world.signIn(jar, "/page?a='b\"&c");
    expect(done.status).toBe(200);
    expect(done.body).toContain('content="0;url=/page?a=%27b%22&#38;c"');
    expect(done.headers.getSetCookie().join()).toContain("SameSite=Strict");
    expect((await world.get("/", jar)).status).toBe(200);
  });
});
