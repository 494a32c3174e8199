// Signing in and out, sessions and tokens over the API: responses, the cookie, and what is shown once.
import { describe, expect, test } from "bun:test";
import { expectOk, PASSWORD, ROOT, usePeople } from "./people.ts";

const people = usePeople();

const logIn = (body: object, headers: Record<string, string> = {}) =>
  people.gateway.api("POST", "/api/v1/auth/login", body, headers);

/** Parses a Set-Cookie as RFC 6265 section 5.2 does. */
function parseCookie(header: string | null) {
  const [pair = "", ...attributes] = (header ?? "").split(";").map((part) => part.trim());
  const [name, value] = pair.split(/=(.*)/s);
  return {
    name,
    value,
    attributes: attributes.map((text) => text.toLowerCase()).toSorted(),
  };
}

const attributes = ["httponly", "max-age=604800", "path=/", "samesite=lax"];

describe("signing in", () => {
  test("returns the user and sets a cookie for seven days", async () => {
    const response = await logIn({ email: "Root@A.example", password: PASSWORD });
    expect(response.status).toBe(200);
    const { id } = (await expectOk(people.root("GET /auth/me"))).user;
    expect(await response.json()).toEqual({
      authentication: "enabled",
      user: { id, email: ROOT.email, name: ROOT.name, role: "admin" },
      role: "admin",
      method: "session",
      expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    const [header = "", ...others] = response.headers.getSetCookie();
    expect(others).toEqual([]);
    expect(parseCookie(header)).toEqual({
      name: expect.stringMatching(/^sluice_session_[0-9a-f]{8}$/),
      attributes,
      value: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    });
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("sets a Secure cookie exactly while public_url is HTTPS", async () => {
    const secure = async () => {
      const response = await logIn({ email: ROOT.email, password: PASSWORD });
      return parseCookie(response.headers.get("set-cookie")).attributes.includes("secure");
    };
    const seen = [await secure()];
    for (const public_url of ["http://gate.example", "https://gate.example", null]) {
      await expectOk(people.root("PATCH /settings", { public_url }));
      seen.push(await secure());
    }
    expect(seen).toEqual([false, false, true, false]);
  });

  test.each([
    { why: "nobody", body: { email: "nobody@a.example", password: PASSWORD } },
    { why: "a wrong password", body: { email: ROOT.email, password: "wrong" } },
  ])("fails with the same message for $why", async ({ body }) => {
    const response = await logIn(body);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get("x-totp-required")).toBeNull();
    expect(await response.json()).toEqual({ error: "wrong e-mail address or password" });
  });

  test("locks an account after ten failures, whatever address the client claims", async () => {
    await people.create("closed");
    const body = { email: "closed@a.example", password: "wrong" };
    const statuses: number[] = [];
    for (let index = 0; index < 12; index++) {
      const claims = { "x-forwarded-for": `10.0.0.${index}`, "x-real-ip": `10.0.0.${index}` };
      const response = await logIn(body, claims);
      statuses.push(response.status);
      if (response.status !== 429) continue;
      expect(Number(response.headers.get("retry-after"))).toBeWithin(1, 301);
      expect(await response.json()).toEqual({
        error: "too many failed sign-ins; try again later",
      });
    }
    // The failures of the tests above came from this address as well.
    const failed = statuses.filter((status) => status === 401).length;
    expect(failed).toBeWithin(1, 11);
    expect(statuses.slice(failed)).toEqual(statuses.slice(failed).map(() => 429));
    expect(statuses).toHaveLength(12);
  });
});
