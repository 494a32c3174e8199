// Passwords that are changed by their owners and by admins, in the running product.
import { describe, expect, test } from "bun:test";
import { expectOk, PASSWORD, ROOT, usePeople } from "../api/people.ts";

const people = usePeople();
const { root } = people;
const NEW = "canary horse battery";
const proof = { current_password: PASSWORD };

describe("PUT /users/:id/password", () => {
  test("ends the user's other sessions and keeps the current one", async () => {
    const user = await people.create("self");
    const [here, there] = [await people.signIn(user.email), await people.signIn(user.email)];
    const path = `/users/${user.email}/password`;
    const wrong = await here(`PUT ${path}`, { current_password: NEW, password: NEW });
    expect(wrong).toMatchObject({ status: 403, body: { error: "current_password: is wrong" } });
    expect((await there("GET /auth/me")).status).toBe(200);
    const body = await expectOk(here(`PUT ${path}`, { current_password: PASSWORD, password: NEW }));
    expect(body).toMatchObject({ id: user.id, has_password: true });
    expect(body).not.toHaveProperty("password_hash");
    expect((await here("GET /auth/me")).status).toBe(200);
    expect((await there("GET /auth/me")).status).toBe(401);
    expect(await people.signInStatus(user.email, PASSWORD)).toBe(401);
    expect(await people.signInStatus(user.email, NEW)).toBe(200);
  });

  test("by an admin needs no old password and ends all sessions", async () => {
    const user = await people.create("reset", "editor");
    const session = await people.signIn(user.email);
    await expectOk(root(`PUT /users/${user.id}/password`, { password: NEW }));
    expect((await session("GET /auth/me")).status).toBe(401);
    expect(await people.signInStatus(user.email, NEW)).toBe(200);
  });

  test("of another user is for admins only, and does not reveal who exists", async () => {
    const user = await people.create("victim");
    const call = await people.signIn((await people.create("nosy", "editor")).email);
    const body = { current_password: PASSWORD, password: NEW };
    for (const key of [user.id, user.email, ROOT.email, "nobody@a.example", Bun.randomUUIDv7()]) {
      const { status, body: error } = await call(`PUT /users/${key}/password`, body);
      expect(status).toBe(403);
      expect(error).toEqual({ error: "only the user or an admin can do this" });
      expect((await call(`DELETE /users/${key}/totp`)).status).toBe(403);
      expect((await call(`POST /users/${key}/totp`, body)).status).toBe(403);
    }
    expect((await people.nobody(`PUT /users/${user.id}/password`, body)).status).toBe(401);
    expect(await people.signInStatus(user.email, PASSWORD)).toBe(200);
  });
});

describe("guessing the old password", () => {
  const others = usePeople();

  test("is limited as at sign-in, even before the correct one", async () => {
    const user = await others.create("guessed");
    const call = await others.signIn(user.email);
    const guess = (current_password: string) =>
      call(`PUT /users/${user.id}/password`, { current_password, password: NEW });
    const statuses: number[] = [];
    for (let count = 0; count < 11; count++) statuses.push((await guess("guess")).status);
    expect(statuses).toEqual([...Array(10).fill(403), 429]);
    const refused = await guess(PASSWORD);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await call(`DELETE /users/${user.id}/totp`, proof)).status).toBe(429);
    expect(await others.signInStatus(user.email, PASSWORD)).toBe(429);
  });
});
