// The history: who may see what of it, and that going back to any revision brings the state of that moment back.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { collectionNames } from "../../../src/model/gateway-config.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { useGateway } from "../api/client.ts";
import { PASSWORD, ROOT, usePeople } from "../api/people.ts";

const CANARY = "Canary-of-the-history";

describe("a rollback", () => {
  const client = useGateway();
  const seed = seedOfRun();
  const random = new Random(seed);

  const state = async () =>
    (await client.callRoot("GET /api/v1/export?format=yaml")).body as string;
  /** Every object as it is stored, encrypted secrets and times included: an export shows masks in their place. */
  const stored = () => {
    const database = new Database(join(client.gateway.dataDir, "sluice.db"), { readonly: true });
    try {
      return JSON.stringify(
        [...collectionNames, "settings", "sso"].map((name) => [
          name,
          database
            .query(`SELECT * FROM ${name} ORDER BY id`)
            .all()
            // What is brought back stands at another position; objects are ordered by their age.
            .map((row) => ({ ...(row as object), position: null })),
        ]),
      );
    } finally {
      database.close();
    }
  };
  const latest = async () => (await client.call("GET /revisions")).body.at(-1).number as number;

  /** One of many changes that users make. */
  async function change(step: number): Promise<void> {
    const name = `n${random.pick([0, 1, 2, 3, 4, 5])}`;
    const calls = [
      ["POST /services", { name, targets: [{ host: "127.0.0.1", port: 1000 + step }] }],
      ["POST /routes", { name, hosts: [`${name}.test`], service_id: random.pick([name, null]) }],
      [`PATCH /services/${name}`, { path: `/${step}` }],
      [`PATCH /routes/${name}`, { priority: step, name: random.pick([name, "swapped"]) }],
      [`DELETE /services/${name}?cascade=1`, undefined],
      [`DELETE /routes/${name}`, undefined],
      ["PATCH /settings", { debug_headers: step % 2 === 0 }],
      ["POST /secrets", { name, value: `${CANARY} ${step}` }],
      [`PATCH /secrets/${name}`, { value: `${CANARY} ${step}` }],
      [`DELETE /secrets/${name}`, undefined],
      [
        "POST /import?mode=merge",
        { format: 1, routes: ["x", "y", "z"].map((word) => ({ name: `${name}${word}` })) },
      ],
      [
        "POST /import?mode=replace",
        { format: 1, routes: [{ name }, { name: `${name}y`, hosts: [`${step}.test`] }] },
      ],
    ] as const;
    const [line, body] = random.pick(calls);
    expect((await client.call(line, { body })).status).toBeLessThan(500);
  }

  test("to any revision, after random changes, restores its state", async () => {
    const states = new Map<number, string>();
    const rows = new Map<number, string>();
    for (let step = 0; step < 80; step++) {
      await change(step);
      const number = await latest();
      states.set(number, await state());
      rows.set(number, stored());
    }
    expect(states.size).toBeGreaterThan(20);
    for (let round = 0; round < 12; round++) {
      const number = random.pick([...states.keys()]);
      const answer = await client.call(`POST /revisions/${number}/restore`);
      expect([answer.status, `seed ${seed}`]).toEqual([200, `seed ${seed}`]);
      expect(await state(), `revision ${number}, seed ${seed}`).toBe(states.get(number) ?? "");
      expect(stored(), `rows of ${number}, seed ${seed}`).toBe(rows.get(number) ?? "");
    }
    const before = await state();
    await client.gateway.restart();
    expect(await state(), `after a restart, seed ${seed}`).toBe(before);
  });

  test("reverts an import, and can be reverted itself", async () => {
    const before = await state();
    const number = await latest();
    const document = { format: 1, routes: [{ name: "imported" }], services: [] };
    expect((await client.call("POST /import?mode=replace", { body: document })).status).toBe(200);
    const after = await state();
    expect(after).not.toBe(before);
    await client.call(`POST /revisions/${number}/restore`);
    expect(await state()).toBe(before);
    await client.call(`POST /revisions/${number + 1}/restore`);
    expect(await state()).toBe(after);
    const summaries = (await client.call("GET /revisions")).body.slice(-2);
    expect(summaries.map(({ summary }: { summary: string }) => summary)).toEqual([
      `restore revision ${number}`,
      `restore revision ${number + 1}`,
    ]);
  });

  test("has a dry run", async () => {
    const [before, number] = [await state(), await latest()];
    const answer = await client.call("POST /revisions/1/restore?dry_run=1");
    expect([answer.status, answer.headers.get("x-dry-run")]).toEqual([200, "true"]);
    expect(answer.body.changes.length).toBeGreaterThan(0);
    expect([await state(), await latest()]).toEqual([before, number]);
  });

  test("to the present changes nothing", async () => {
    const number = await latest();
    const answer = await client.call(`POST /revisions/${number}/restore`);
    expect([answer.body, await latest()]).toEqual([{ changes: [] }, number]);
  });

  test.each(["0", "999999", "x", "-1", "1.5"])("to %s is 404", async (number) => {
    for (const line of [`GET /revisions/${number}`, `POST /revisions/${number}/restore`])
      expect((await client.call(line)).status).toBe(404);
  });

  test("is refused for deleted revisions", async () => {
    await client.call("PATCH /settings", { body: { retention: { revisions: 3 } } });
    await client.create("/routes", { name: "one-more" });
    const numbers = (await client.call("GET /revisions")).body.map(
      (each: { number: number }) => each.number,
    );
    expect(numbers).toHaveLength(3);
    expect((await client.call(`POST /revisions/${numbers[0] - 1}/restore`)).status).toBe(404);
    expect((await client.call(`POST /revisions/${numbers[0]}/restore`)).status).toBe(200);
  });

  test("shows no secret", async () => {
    // Whatever the changes before have left.
    await client.create("/secrets", { name: "certain", value: `${CANARY} certain` });
    const texts: string[] = [];
    for (const { number } of (await client.call("GET /revisions")).body)
      texts.push(JSON.stringify((await client.call(`GET /revisions/${number}`)).body));
    texts.push(
      JSON.stringify(
        (
          await client.call("POST /import?dry_run=1&mode=replace", {
            body: { format: 1, secrets: [] },
          })
        ).body,
      ),
    );
    expect(texts.filter((text) => text.includes(CANARY) || text.includes("sealed:1:"))).toEqual([]);
    expect(texts.join("")).toContain('"kind":"secret"');
  });
});

describe("users", () => {
  const people = usePeople();
  const numberOf = async () => (await people.root("GET /revisions")).body.at(-1).number as number;

  test("who were deleted stay deleted, and present ones stay", async () => {
    await people.create("left", "admin");
    const number = await numberOf();
    const made = await people.root("POST /tokens", { name: "later", role: "admin" });
    const later = { authorization: `Bearer ${made.body.token}` };
    await people.root("DELETE /users/left@a.example");
    await people.root("PUT /sso", { client_id: "later" });
    const answer = await people.root(`POST /revisions/${number}/restore`);
    expect(answer.status).toBe(200);
    const users = (await people.root("GET /users")).body.map(
      (user: { email: string }) => user.email,
    );
    expect(users).toEqual([ROOT.email]);
    expect(await people.signInStatus("left@a.example", PASSWORD)).toBe(401);
    expect((await people.root("GET /sso")).body.client_id).toBe("later");
    expect((await people.gateway.api("GET", "/api/v1/users", undefined, later)).status).toBe(200);
  });

  test("below admin see changes of traffic, but not those of access", async () => {
    await people.root("POST /services", { name: "seen" });
    await people.create("hidden", "viewer");
    const viewer = await people.signIn("hidden@a.example");
    const heads = (await viewer("GET /revisions")).body;
    expect(heads.slice(-2)).toMatchObject([
      { summary: 'create service "seen"' },
      { summary: "change management access" },
    ]);
    const detail = await viewer(`GET /revisions/${heads.at(-1).number}`);
    expect(detail.body).toMatchObject({ summary: "change management access", changes: [] });
    expect(JSON.stringify([heads, detail.body])).not.toContain("hidden@a.example");
    const full = await people.root(`GET /revisions/${heads.at(-1).number}`);
    expect(full.body.changes).toMatchObject([
      { action: "create", kind: "user", name: "hidden@a.example" },
    ]);
    expect(JSON.stringify(full.body)).not.toContain("argon2");
    expect((await viewer("POST /revisions/1/restore")).status).toBe(403);
  });

  test("see changes field by field", async () => {
    await people.root("PATCH /services/seen", { algorithm: "least_connections" });
    const { body } = await people.root(`GET /revisions/${await numberOf()}`);
    expect(body).toMatchObject({
      actor: ROOT.email,
      summary: 'update service "seen"',
      changes: [
        {
          action: "update",
          kind: "service",
          name: "seen",
          diff: [{ path: "algorithm", before: "round_robin", after: "least_connections" }],
        },
      ],
    });
    await people.root("DELETE /services/seen");
    const gone = (await people.root(`GET /revisions/${await numberOf()}`)).body.changes[0];
    expect(gone).toMatchObject({ action: "delete", kind: "service", name: "seen" });
    expect(gone.diff).toContainEqual({ path: "name", before: "seen", after: null });
  });
});
