// However it is tried, an admin who can sign in always remains.
import { describe, expect, test } from "bun:test";
import { type Answer, PASSWORD, ROOT, usePeople } from "../api/people.ts";

const people = usePeople();
const { token } = people;
const LAST = "the last admin cannot be deleted, demoted or disabled";

interface Listed {
  email: string;
  role: string;
  enabled: boolean;
}

async function activeAdmins(): Promise<string[]> {
  const { body } = await token("GET /users");
  return (body as Listed[])
    .filter(({ role, enabled }) => role === "admin" && enabled)
    .map(({ email }) => email);
}

const { password: _, ...plainRoot } = ROOT;

describe("the last admin", () => {
  test.each([
    { why: "deleted", line: "DELETE", body: undefined },
    { why: "deleted with what refers to it", line: "DELETE ?cascade=1", body: undefined },
    { why: "deleted in a trial", line: "DELETE ?dry_run=1", body: undefined },
    { why: "demoted by PATCH", line: "PATCH", body: { role: "editor" } },
    { why: "demoted to viewer by PATCH", line: "PATCH", body: { role: "viewer" } },
    { why: "disabled by PATCH", line: "PATCH", body: { enabled: false } },
    { why: "demoted by PUT", line: "PUT", body: { ...plainRoot, role: "viewer" } },
    { why: "disabled by PUT", line: "PUT", body: { ...plainRoot, enabled: false } },
    {
      why: "demoted with a new address and password",
      line: "PUT",
      body: { email: "new@a.example", name: "N", role: "editor", password: "some other horse" },
    },
  ])("cannot be $why", async ({ line, body }) => {
    // Neither others nor admins who are disabled count.
    if ((await token("GET /users/idle@a.example")).status === 404) {
      await people.create("idle", "admin", { enabled: false });
      await people.create("busy", "editor");
    }
    const [method, query = ""] = line.split(" ");
    const answer = await token(`${method} /users/${ROOT.email}${query}`, body);
    expect(answer.status).toBe(409);
    expect(answer.body).toEqual({ error: expect.stringContaining(LAST) });
    expect(await activeAdmins()).toEqual([ROOT.email]);
    expect(await people.signInStatus(ROOT.email, PASSWORD)).toBe(200);
  });

  test("gets an error with its address", async () => {
    const { body } = await token(`DELETE /users/${ROOT.email}`);
    expect(body).toEqual({ error: `user "${ROOT.email}": ${LAST}` });
  });

  test("may go once there is another one", async () => {
    await people.create("second", "admin");
    expect((await token(`PATCH /users/${ROOT.email}`, { role: "viewer" })).status).toBe(200);
    expect(await activeAdmins()).toEqual(["second@a.example"]);
    expect((await token("DELETE /users/second@a.example")).status).toBe(409);
    expect((await token(`PATCH /users/${ROOT.email}`, { role: "admin" })).status).toBe(200);
    expect((await token("DELETE /users/second@a.example")).status).toBe(200);
  });
});

describe("of two admins, when both are removed at the same time", () => {
  const ways: { why: string; take: (email: string) => Promise<Answer> }[] = [
    { why: "deleted", take: (email) => token(`DELETE /users/${email}`) },
    { why: "demoted", take: (email) => token(`PATCH /users/${email}`, { role: "viewer" }) },
    { why: "disabled", take: (email) => token(`PATCH /users/${email}`, { enabled: false }) },
  ];
  const pairs = ways.flatMap((one) =>
    ways.map((other) => ({ why: `one ${one.why}, one ${other.why}`, one, other })),
  );
  test.each(pairs)("$why: one remains", async ({ one, other }) => {
    const [left] = await activeAdmins();
    const name = `rival-${Bun.randomUUIDv7()}`;
    const { email } = await people.create(name, "admin");
    const answers = await Promise.all([one.take(left ?? ""), other.take(email)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await activeAdmins()).toHaveLength(1);
  });
});
