// Authentication plugins on a real gateway with two workers: what is counted, is counted over both; what is secret, stays so.
import { beforeAll, describe, expect, test } from "bun:test";
import { mirrored, talk, useListeners } from "../listeners/world.ts";
import { signed } from "./signer.ts";

const { api, listener } = useListeners();
const SECRET = "a shared secret of forty characters.....";
const HASH = await Bun.password.hash("right", {
  algorithm: "argon2id",
  memoryCost: 64,
  timeCost: 1,
});
const made: { port?: number; plugin?: string } = {};

/** The plugin alone, in the place of the one before. */
async function use(name: string, config: object): Promise<string> {
  if (made.plugin !== undefined) await api.call(`DELETE /plugins/${made.plugin}`);
  made.plugin = (await api.create("/plugins", { name, config })).id as string;
  return made.plugin;
}

/** On a connection of its own, so that either worker may get it. */
async function visit(headers: Readonly<Record<string, string>>) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = await talk(made.port ?? 0, [
    `GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n${lines.join("")}\r\n`,
  ]);
  const status = Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]);
  return { status, fields: status === 200 ? mirrored(text) : {} };
}

const many = async (count: number, headers: (at: number) => Record<string, string>) => {
  const answers = await Promise.all(Array.from({ length: count }, (_, at) => visit(headers(at))));
  return answers.map(({ status }) => status);
};
const basic = (username: string, password: string) => ({
  Authorization: `Basic ${btoa(`${username}:${password}`)}`,
});

beforeAll(async () => {
  made.port = await listener("workers");
  await api.create("/consumers", { username: "alice", groups: ["staff"] });
  for (const credential of [
    { type: "basic", secret: "a long password" },
    { type: "hmac", identifier: "k1", secret: SECRET },
    { type: "jwt", identifier: "alice-key", secret: SECRET },
  ])
    await api.create("/consumers/alice/credentials", credential);
});

describe("basic-auth", () => {
  const users = [{ username: "inline", password_hash: HASH }];

  test("checks ten guesses in both workers together", async () => {
    await use("basic-auth", { users });
    const statuses = await many(40, (at) => basic("inline", `guess ${at}`));
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(30);
  });

  test("accepts passwords of consumers as the management API stores them", async () => {
    await use("basic-auth", { users });
    const { status, fields } = await visit(basic("alice", "a long password"));
    expect(status).toBe(200);
    expect(fields["x-consumer-username"]).toBe("alice");
    expect((await visit(basic("inline", "right"))).status).toBe(200);
  });

  test("never shows a hash, and keeps it when omitted", async () => {
    const id = await use("basic-auth", { users });
    const shown = JSON.stringify((await api.call(`GET /plugins/${id}`)).body);
    expect(shown).toContain("inline");
    expect(shown).not.toContain("argon2id");
    const body = { config: { users: [{ username: "inline" }], realm: "other" } };
    expect((await api.call(`PATCH /plugins/${id}`, { body })).status).toBe(200);
    expect((await visit(basic("inline", "right"))).status).toBe(200);
  });

  test("refuses an invalid hash, without showing it", async () => {
    const config = { users: [{ username: "a", password_hash: "hunter2-canary" }] };
    const body = { name: "basic-auth", label: "wrong", service_id: "mirror", config };
    const { status, body: answer } = await api.call("POST /plugins", { body });
    expect(status).toBe(400);
    expect(answer.error).toBe(
      "config.users[0].password_hash: must be a hash of argon2id, bcrypt, $apr1$, $1$, $5$, $6$, {SHA} or {SSHA}",
    );
  });
});

test("hmac-auth accepts a nonce once in both workers together", async () => {
  await use("hmac-auth", { nonce_cache: true, required_components: ["@method"] });
  const components = [['"@method"', "GET"]] as const;
  const headers = signed({ components, key: SECRET, keyId: "k1", parameters: { nonce: "n" } });
  const statuses = await many(20, () => headers);
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(statuses.filter((status) => status === 401)).toHaveLength(19);
});

test("jwt accepts secrets of consumers as the management API stores them", async () => {
  const { SignJWT } = await import("jose");
  const token = await new SignJWT({ iss: "alice-key" })
    .setProtectedHeader({ alg: "HS256" })
    .sign(new TextEncoder().encode(SECRET));
  await use("jwt", { algorithms: ["HS256"] });
  const { status, fields } = await visit({ Authorization: `Bearer ${token}` });
  expect(status).toBe(200);
  expect(fields["x-consumer-username"]).toBe("alice");
  const wrong = { name: "jwt", label: "w", service_id: "mirror", config: { algorithms: ["none"] } };
  expect((await api.call("POST /plugins", { body: wrong })).status).toBe(400);
});

test("acl reports errors in its lists", async () => {
  for (const [config, error] of [
    [{}, "config: allow or deny must name a group"],
    [{ allow: ["a"], deny: ["b"] }, "config.deny: must be empty when allow is not"],
  ] as const) {
    const body = { name: "acl", label: "wrong", config };
    const answer = await api.call("POST /plugins", { body });
    expect([answer.status, answer.body.error]).toEqual([400, error]);
  }
});
