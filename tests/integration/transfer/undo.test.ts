// Undoing one revision: it reverts that change alone, and never a change of another user.
import { beforeAll, describe, expect, test } from "bun:test";
import { type Call, usePeople } from "../api/people.ts";

const people = usePeople();
let editor: Call;
let other: Call;

beforeAll(async () => {
  await people.create("editor", "editor");
  await people.create("other", "editor");
  editor = await people.signIn("editor@a.example");
  other = await people.signIn("other@a.example");
});

/** Sends a change, and returns its revision. */
async function change(call: Call, line: string, body?: unknown): Promise<number> {
  const { status, headers, body: answer } = await call(line, body);
  expect([line, status, answer]).toEqual([line, 200, expect.anything()]);
  return Number(headers.get("x-config-revision"));
}

const undo = async (call: Call, revision: number) => {
  const { status, body } = await call(`POST /revisions/${revision}/undo`);
  return [status, body.error ?? null];
};

/** What the revision itself says about it, to this client. */
const problemOf = async (call: Call, revision: number) =>
  (await call(`GET /revisions/${revision}`)).body.undo_problem;

const read = async (path: string) => (await people.root(`GET ${path}`)).body;

describe("a change", () => {
  test("is reverted with everything that a cascade deleted, and later changes stay", async () => {
    const target = { host: "127.0.0.1", port: 3000 };
    await change(editor, "POST /services", { name: "web", targets: [target] });
    await change(editor, "POST /routes", { name: "shop", hosts: ["a.test"], service_id: "web" });
    await change(editor, "POST /consumers", { username: "ann" });
    const before = [await read("/services/web"), await read("/routes/shop")];
    const deleted = await change(editor, "DELETE /services/web?cascade=1");
    await change(other, "PATCH /consumers/ann", { description: "changed meanwhile" });

    expect(await undo(editor, deleted)).toEqual([200, null]);
    const states = ([service, route]: object[]) => [{ ...service, targets: [] }, route];
    expect(states([await read("/services/web"), await read("/routes/shop")])).toEqual(
      states(before),
    );
    expect((await read("/services/web")).targets[0].id).toBe(before[0].targets[0].id);
    expect((await read("/consumers/ann")).description).toBe("changed meanwhile");
    expect((await read("/revisions")).at(-1)).toMatchObject({
      actor: "editor@a.example",
      summary: `undo revision ${deleted}: delete service "web"`,
    });
  });

  test("of a field, of a new object, and an undo itself can be undone", async () => {
    await change(editor, "POST /services", { name: "api" });
    const disabled = await change(editor, "PATCH /services/api", { algorithm: "ewma" });
    expect(await undo(editor, disabled)).toEqual([200, null]);
    expect((await read("/services/api")).algorithm).toBe("round_robin");
    const undone = (await read("/revisions")).at(-1).number;
    expect(await undo(editor, undone)).toEqual([200, null]);
    expect((await read("/services/api")).algorithm).toBe("ewma");
    const created = await change(editor, "POST /routes", { name: "new", hosts: ["n.test"] });
    expect(await undo(editor, created)).toEqual([200, null]);
    expect((await people.root("GET /routes/new")).status).toBe(404);
  });

  test("says beforehand to whom the gateway would refuse it, and why", async () => {
    const made = await change(editor, "POST /services", { name: "said" });
    expect(await problemOf(editor, made)).toBeNull();
    const foreign = await problemOf(other, made);
    expect(foreign).toContain("editor@a.example: only they may undo it");
    expect(await undo(other, made)).toEqual([403, foreign]);
    await change(other, "PATCH /services/said", { algorithm: "ewma" });
    const changed = await problemOf(editor, made);
    expect(changed).toContain('service "said" has changed since');
    expect(await undo(editor, made)).toEqual([409, changed]);
    await change(people.root, "PATCH /settings", { debug_headers: true });
    const ofAdmin = (await read("/revisions")).at(-1).number;
    expect(await problemOf(people.root, ofAdmin)).toBeNull();
    expect(await problemOf(editor, ofAdmin)).toContain("only they may undo it");
    await change(people.root, "PATCH /settings", { debug_headers: false });
  });

  test("of a credential works again with the same key", async () => {
    const made = await editor("POST /consumers/ann/credentials", { type: "key" });
    const deleted = await change(editor, `DELETE /credentials/${made.body.id}`);
    expect(await undo(editor, deleted)).toEqual([200, null]);
    expect((await read(`/credentials/${made.body.id}`)).id).toBe(made.body.id);
  });

  test("has a dry run", async () => {
    const changed = await change(editor, "PATCH /services/api", { algorithm: "first" });
    const answer = await editor(`POST /revisions/${changed}/undo?dry_run=1`);
    expect([answer.status, answer.body.changes.length]).toEqual([200, 1]);
    expect((await read("/services/api")).algorithm).toBe("first");
  });
});

describe("it is refused", () => {
  test("when the same object has changed since, also back to the same fields", async () => {
    const first = await change(editor, "PATCH /services/api", { description: "one" });
    await change(other, "PATCH /services/api", { description: "two" });
    const error = `revision ${first} cannot be undone: service "api" has changed since; see the later revisions`;
    expect(await undo(editor, first)).toEqual([409, error]);
    const deleted = await change(editor, "DELETE /services/api");
    await change(other, "POST /services", { name: "api" });
    const [status] = await undo(editor, deleted);
    expect(status).toBe(409);
    expect((await read("/services/api")).description).toBe("");
  });

  test("when other objects need what it would remove", async () => {
    const created = await change(editor, "POST /services", { name: "needed" });
    await change(other, "POST /routes", { name: "needs", service_id: "needed" });
    const [status, error] = await undo(editor, created);
    expect(error).toBe(`route "needs": service_id: service does not exist`);
    expect(status).toBe(400);
  });

  test("to everyone but its author, whatever the role", async () => {
    const changed = await change(editor, "PATCH /services/api", { description: "mine" });
    const error = `revision ${changed} is a change of editor@a.example: only they may undo it`;
    expect(await undo(other, changed)).toEqual([403, error]);
    expect(await undo(people.root, changed)).toEqual([403, error]);
    expect((await people.nobody(`POST /revisions/${changed}/undo`)).status).toBe(401);
  });

  test("to an author who is no longer an admin, for what only admins may change", async () => {
    await people.create("former", "admin");
    const former = await people.signIn("former@a.example");
    const changed = await change(former, "PATCH /settings", { debug_headers: true });
    await people.root("PATCH /users/former@a.example", { role: "editor" });
    const demoted = await people.signIn("former@a.example");
    expect(await undo(demoted, changed)).toEqual([403, "the role admin is required"]);
    await people.root("PATCH /users/former@a.example", { role: "viewer" });
    expect((await undo(await people.signIn("former@a.example"), changed))[0]).toBe(403);
  });

  test("for users and tokens, which must not come back", async () => {
    const deleted = await change(people.root, "DELETE /users/former@a.example");
    expect(await undo(people.root, deleted)).toEqual([
      409,
      `revision ${deleted} cannot be undone: it changed users`,
    ]);
  });

  test.each(["0", "999999", "x"])("for revision %s, which does not exist", async (number) => {
    expect((await people.root(`POST /revisions/${number}/undo`)).status).toBe(404);
  });
});

test("settings are undone by an admin", async () => {
  const changed = await change(people.root, "PATCH /settings", { debug_headers: false });
  expect(await undo(people.root, changed)).toEqual([200, null]);
  expect((await read("/settings")).debug_headers).toBe(true);
});
