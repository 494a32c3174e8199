// basic-auth on a real data plane: accepted passwords, caching, throttling, rejections.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hashPassword } from "../../../src/crypto/password.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import basicAuth from "../../../src/plugins/basic-auth.ts";

const BASIC = 'Basic realm="sluice", charset="UTF-8"';
const cheap = { algorithm: "argon2id", memoryCost: 64, timeCost: 1 } as const;

const basic = (username: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
});

let scene: PluginScene;
let users: { username: string; password_hash: string }[];

/** Each instance has its own counts, so each test has an instance. */
const fresh = (label: string, config: object = {}) =>
  scene.apply({
    removedPlugins: [...labels],
    plugins: [{ name: "basic-auth", label: remember(label), config: { users, ...config } }],
  });
const labels = new Set<string>();
function remember(label: string): string {
  labels.clear();
  labels.add(label);
  return label;
}

beforeAll(async () => {
  users = [
    { username: "inline", password_hash: await Bun.password.hash("grün:weiß", cheap) },
    {
      username: "htpasswd",
      password_hash: (await Bun.password.hash("secret", { algorithm: "bcrypt", cost: 4 })).replace(
        "$2b$",
        "$2y$",
      ),
    },
  ];
  const hash = await hashPassword("pässwort");
  const HOUR = 3_600_000;
  scene = await pluginScene({
    consumers: [{ username: "alice", customId: "a-1" }, { username: "guest" }],
    credentials: [
      { type: "basic", consumerId: "alice", identifier: "alice", hash, name: "laptop" },
      { type: "basic", consumerId: "alice", identifier: "old", hash, expiresAt: Date.now() - 1 },
      {
        type: "basic",
        consumerId: "alice",
        identifier: "rotated",
        hash: await hashPassword("new"),
        previous: { hash, secret: null, until: Date.now() + HOUR },
      },
      { type: "basic", consumerId: "nobody", identifier: "off", hash },
    ],
  });
});
afterAll(() => scene.stop());

describe("a password", () => {
  beforeAll(() => fresh("passwords"));

  test("authenticates its consumer, and the target receives the identity", async () => {
    const { status, seen } = await scene.get("/", basic("alice", "pässwort"));
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({
      "x-consumer-username": "alice",
      "x-consumer-custom-id": "a-1",
      "x-credential-identifier": "alice",
    });
    expect(seen?.headers).not.toHaveProperty("authorization");
  });

  test("in another Unicode form is the same password", async () => {
    expect((await scene.get("/", basic("alice", "pässwort".normalize("NFD")))).status).toBe(200);
  });

  test.each([
    ["inline", "grün:weiß"],
    ["htpasswd", "secret"],
  ])("of a user %s of the configuration belongs to no consumer", async (username, password) => {
    const { status, seen } = await scene.get("/", basic(username, password));
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({ "x-credential-identifier": username });
    expect(seen?.headers).not.toHaveProperty("x-consumer-username");
  });

  test("that was rotated is valid until its period ends", async () => {
    expect((await scene.get("/", basic("rotated", "new"))).status).toBe(200);
    expect((await scene.get("/", basic("rotated", "pässwort"))).status).toBe(200);
  });

  test("may follow a scheme in any case and several spaces", async () => {
    const { Authorization } = basic("alice", "pässwort");
    const odd = Authorization.replace("Basic ", "bASIC   ");
    expect((await scene.get("/", { Authorization: odd })).status).toBe(200);
  });
});

describe("without consumers", () => {
  beforeAll(() => fresh("without consumers", { consumers: false }));

  test("the configured users are allowed", async () => {
    expect((await scene.get("/", basic("htpasswd", "secret"))).status).toBe(200);
  });

  test("consumers are not, whatever they send", async () => {
    const { status, seen } = await scene.get("/", basic("alice", "pässwort"));
    expect([status, seen]).toEqual([401, null]);
  });
});

describe("refused with 401 is", () => {
  beforeAll(() => fresh("refusals"));
  const good = () => basic("alice", "pässwort").Authorization;

  test.each([
    ["nothing", () => ({})],
    ["another scheme", () => ({ Authorization: "Bearer x" })],
    ["no base64", () => ({ Authorization: "Basic !!!" })],
    ["two at a time", () => ({ Authorization: `${good()}, ${good()}` })],
    ["no colon", () => ({ Authorization: `Basic ${btoa("alice")}` })],
    ["what is not UTF-8", () => ({ Authorization: `Basic ${btoa("alice:p\xe4sswort")}` })],
    ["a control character", () => basic("alice", "pässwort\u0000")],
    ["a wrong password", () => basic("alice", "passwort")],
    ["no password", () => basic("alice", "")],
    ["no password of a user of the configuration", () => basic("inline", "")],
    ["an unknown user", () => basic("mallory", "pässwort")],
    ["an expired credential", () => basic("old", "pässwort")],
    ["a consumer that is off", () => basic("off", "pässwort")],
  ])("%s", async (_, headers) => {
    const answer = await scene.get("/", headers() as Record<string, string>);
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe(BASIC);
    expect(answer.seen).toBeNull();
    expect(answer.body).not.toContain("asswort");
  });
});

describe("of wrong passwords from one address", () => {
  test("ten are checked, and then none for a while", async () => {
    await fresh("ten");
    await scene.get("/", basic("alice", "pässwort"));
    for (let at = 0; at < 10; at++)
      expect((await scene.get("/", basic("inline", `guess ${at}`))).status).toBe(401);
    const refused = await scene.get("/", basic("inline", "grün:weiß"));
    expect(refused.status).toBe(429);
    const wait = Number(refused.headers.get("retry-after"));
    expect(wait).toBeGreaterThanOrEqual(1);
    expect(wait).toBeLessThanOrEqual(120);
    // Cached logins are not affected, and neither are requests without credentials.
    expect((await scene.get("/", basic("alice", "pässwort"))).status).toBe(200);
    expect((await scene.get("/")).status).toBe(401);
  });

  test("no more are checked when many arrive at once", async () => {
    await fresh("at once");
    const guesses = Array.from({ length: 40 }, (_, at) =>
      scene.get("/", basic("inline", `guess ${at}`)),
    );
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(30);
  });

  test("correct ones do not count, however often", async () => {
    await fresh("right");
    for (let round = 0; round < 2; round++) {
      const clients = Array.from({ length: 30 }, () =>
        scene.get("/", basic("inline", "grün:weiß")),
      );
      for (const { status } of await Promise.all(clients)) expect(status).toBe(200);
    }
    for (let at = 0; at < 10; at++)
      expect((await scene.get("/", basic("inline", `guess ${at}`))).status).toBe(401);
  });
});

test("a changed password is not cached", async () => {
  await fresh("changed");
  expect((await scene.get("/", basic("alice", "pässwort"))).status).toBe(200);
  await scene.apply({
    consumers: [{ username: "bob" }],
    credentials: [
      {
        id: "b",
        type: "basic",
        consumerId: "bob",
        identifier: "bob",
        hash: await hashPassword("1"),
      },
    ],
  });
  expect((await scene.get("/", basic("bob", "1"))).status).toBe(200);
  await scene.apply({
    credentials: [
      {
        id: "b",
        type: "basic",
        consumerId: "bob",
        identifier: "bob",
        hash: await hashPassword("2"),
      },
    ],
  });
  expect((await scene.get("/", basic("bob", "1"))).status).toBe(401);
  expect((await scene.get("/", basic("bob", "2"))).status).toBe(200);
});

test("realm, anonymous consumer and hidden credentials can be configured", async () => {
  await fresh("choices", { realm: "the shop", hide_credentials: false });
  const refused = await scene.get("/");
  expect(refused.headers.get("www-authenticate")).toBe('Basic realm="the shop", charset="UTF-8"');
  const headers = basic("alice", "pässwort");
  expect((await scene.get("/", headers)).seen?.headers["authorization"]).toBe(
    headers.Authorization,
  );
  await fresh("stand-in", { anonymous_consumer: "guest" });
  expect((await scene.get("/")).seen?.headers).toMatchObject({
    "x-consumer-username": "guest",
    "x-anonymous-consumer": "true",
  });
});

describe("a configuration", () => {
  const check = basicAuth.check as unknown as (config: object) => readonly { path: string }[];
  const argon2 =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
  test.each([
    ["argon2id", argon2, true],
    ["bcrypt", `$2y$05$${"a".repeat(53)}`, true],
    ["a missing secret, which is reported elsewhere", "-", true],
    ["a password", "secret", false],
    ["argon2i", argon2.replace("2id", "2i"), false],
    ["argon2id that needs all memory", argon2.replace("19456", "4194304"), false],
    ["argon2id that takes for ever", argon2.replace("t=2", "t=99"), false],
    ["bcrypt that takes for ever", `$2y$31$${"a".repeat(53)}`, false],
    ["MD5 of htpasswd", "$apr1$x$yyyyyyyyyyyyyyyyyyyyyy", true],
    ["SHA-512 of crypt with too many rounds", `$6$rounds=200001$x$${"a".repeat(86)}`, false],
  ])("with %s as the hash", (_, hash, isGood) => {
    const problems = check({ users: [{ username: "a", password_hash: hash }] });
    expect(problems.map(({ path }) => path)).toEqual(isGood ? [] : ["users[0].password_hash"]);
    if (hash.length > 5) expect(JSON.stringify(problems)).not.toContain(hash);
  });

  test("names each user once", () => {
    const one = { username: "a", password_hash: argon2 };
    expect(check({ users: [one, one] })).toEqual([
      { path: "users[1].username", message: "is used twice" },
    ] as never);
  });
});
