// Credentials: secrets are generated or checked, stored as hashes or encrypted, rotated, never shown again; keys have the right type.
import { describe, expect, test } from "bun:test";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { verifyPassword } from "../../../src/crypto/password.ts";
import { hashToken } from "../../../src/crypto/token.ts";
import { CredentialUse } from "../../../src/control/credential-use.ts";
import { createLog } from "../../../src/log.ts";
import { CredentialUseTable } from "../../../src/store/credentials.ts";
import { openStore, temporaryDirectory } from "../store/fixture.ts";
import { options } from "./fixture.ts";
import { pluginWorld, type PluginWorld, refusal } from "./plugin-fixture.ts";

// biome-ignore lint/suspicious/noExplicitAny: what is shown once is in no type
type Shown = any;

async function world(clock?: { now: () => number }) {
  const made = pluginWorld(clock);
  await made.control.resources.consumers.create({ username: "alice" }, options);
  return made;
}

const create = async ({ control }: PluginWorld, fields: object): Promise<Shown> =>
  (await control.credentials.create({ consumer_id: "alice", ...fields }, options)).view;

const storedOf = ({ control }: PluginWorld, id: string): Shown =>
  control.changes.config.credentials.get(id);

describe("a generated secret", () => {
  test("of a key is stored as its SHA-256 and shown once", async () => {
    const at = await world();
    const { id, secret, prefix, ...shown } = await create(at, { type: "key" });
    expect(secret).toMatch(/^slt_[\w-]{43}$/);
    expect(prefix).toBe(secret.slice(0, 8));
    expect(shown).toMatchObject({ type: "key", identifier: null, algorithm: null });
    expect(storedOf(at, id)).toMatchObject({ secret_hash: hashToken(secret), sealed_secret: null });
    expect(at.control.credentials.get(id).view).not.toHaveProperty("secret");
    expect(JSON.stringify(at.steps.commits)).not.toContain(secret);
  });

  test("of a password is stored as argon2id; the user name is the consumer's", async () => {
    const at = await world();
    const { id, secret, identifier } = await create(at, { type: "basic" });
    expect(identifier).toBe("alice");
    const { secret_hash: hash } = storedOf(at, id);
    expect(hash).toStartWith("$argon2id$");
    expect(await verifyPassword(secret, hash)).toBe(true);
  });

  test.each([
    ["jwt", "HS256"],
    ["hmac", "hmac-sha256"],
  ])("of %s is sealed; its identifier is random", async (type, algorithm) => {
    const at = await world();
    const one = await create(at, { type });
    const other = await create(at, { type });
    expect(one.algorithm).toBe(algorithm);
    expect(one.identifier).not.toBe(other.identifier);
    expect(Buffer.from(one.secret, "base64url")).toHaveLength(64);
    expect(at.box.open(storedOf(at, one.id).sealed_secret)).toBe(one.secret);
    // Sending back what was read changes nothing, and makes no new identifier.
    const { revision } = at.control.changes;
    const { secret: _, ...read } = one;
    await at.control.credentials.replace(one.id, { ...read, identifier: null }, options);
    expect(at.control.changes.revision).toBe(revision);
  });

  test("of a dry run is not shown", async () => {
    const at = await world();
    const dry = { ...options, dryRun: true };
    const body = { consumer_id: "alice", type: "key" };
    expect((await at.control.credentials.create(body, dry)).view).not.toHaveProperty("secret");
    const { id } = await create(at, { type: "jwt" });
    expect((await at.control.credentials.rotate(id, {}, dry)).view).not.toHaveProperty("secret");
  });
});

describe("a secret from the client", () => {
  const secret = "a secret that is long enough to be one";

  test("is not shown, and writing it again changes nothing", async () => {
    const at = await world();
    for (const fields of [
      { type: "key", secret: "0123456789abcdef" },
      { type: "basic", secret: "x" },
      { type: "jwt", secret },
      { type: "hmac", secret },
    ]) {
      const view = await create(at, fields);
      expect(view).not.toHaveProperty("secret");
      const { revision } = at.control.changes;
      await at.control.credentials.replace(view.id, { ...view, ...fields }, options);
      await at.control.credentials.patch(view.id, { secret: fields.secret }, options);
      await at.control.credentials.replace(view.id, view, options);
      await at.control.credentials.patch(view.id, { secret: null }, options);
      expect(at.control.changes.revision).toBe(revision);
      await at.control.credentials.patch(view.id, { secret: `${fields.secret}.other` }, options);
      expect(at.control.changes.revision).toBe(revision + 1);
    }
  });

  test.each([
    [{ type: "key", secret: "0123456789abcde" }, "secret: must have at least 16 characters"],
    [{ type: "key", secret: "0123456789 abcdef" }, "secret: must be printable ASCII without"],
    [{ type: "basic", secret: "a\u0000b" }, "secret: must be text without control characters"],
    [{ type: "basic", secret: "" }, "secret: must not be empty"],
    [{ type: "basic", secret: "x".repeat(4097) }, "secret: must have at most 4096 characters"],
    [{ type: "jwt", secret: "x".repeat(31) }, "secret: must have at least 32 characters"],
    [{ type: "hmac", secret: 5 }, "secret: must be a string"],
    [{ type: "basic", secret_hash: "x" }, "secret_hash: is not a known field"],
    [{ type: "jwt", sealed_secret: "x" }, "sealed_secret: is not a known field"],
    [{ type: "key", prefix: "x" }, "prefix: is set by the gateway and cannot be chosen"],
    [{ type: "key", identifier: "x" }, "identifier: must be null for the type key"],
    [{ type: "key", algorithm: "HS256" }, "algorithm: must be null for the type key"],
    [
      { type: "jwt", algorithm: "hmac-sha256" },
      "algorithm: hmac-sha256 is not an algorithm of the type jwt",
    ],
    [{ type: "jwt", algorithm: "RS256" }, "public_key: is required for RS256"],
    [{ type: "jwt", public_key: "x" }, "public_key: must be null for HS256"],
    [{ type: "jwt", algorithm: "RS256", secret }, "secret: must be absent for RS256"],
    [{ type: "other" }, "type: must be one of"],
    [{ type: "key", consumer_id: "bob" }, 'consumer_id: consumer "bob" does not exist'],
    [{}, "type: is required"],
  ])("%j is rejected", async (fields, message) => {
    const at = await world();
    const refused = await refusal(create(at, fields));
    expect(refused).toStartWith(`400 ${message}`);
  });

  test("belongs to one credential only", async () => {
    const at = await world();
    await create(at, { type: "key", secret: "0123456789abcdef" });
    const again = create(at, { type: "key", secret: "0123456789abcdef" });
    expect(await refusal(again)).toBe("409 secret: is in use already");
    await create(at, { type: "basic" });
    expect(await refusal(create(at, { type: "basic" }))).toBe(
      "409 identifier: belongs to another credential already",
    );
  });
});

describe("a credential", () => {
  test("keeps its type and its consumer", async () => {
    const at = await world();
    const { credentials } = at.control;
    const { consumers } = at.control.resources;
    await consumers.create({ username: "bob" }, options);
    const { id } = await create(at, { type: "key" });
    expect(await refusal(credentials.patch(id, { type: "jwt" }, options))).toBe(
      "400 type: cannot be changed",
    );
    expect(await refusal(credentials.patch(id, { consumer_id: "bob" }, options))).toBe(
      "400 consumer_id: cannot be changed",
    );
    await credentials.patch(id, { consumer_id: "alice", name: "x" }, options);
    expect(credentials.get(id).view.name).toBe("x");
    // Names are not unique, so they stand for no id.
    expect(() => credentials.get("x")).toThrow('credential "x" does not exist');
  });

  test("of a consumer with a colon in its username needs an identifier", async () => {
    const at = await world();
    await at.control.resources.consumers.create({ username: "a:b" }, options);
    const fields = { type: "basic", consumer_id: "a:b" };
    expect(await refusal(create(at, fields))).toStartWith("400 identifier: is required");
    expect((await create(at, { ...fields, identifier: "ab" })).identifier).toBe("ab");
  });

  test("goes with its consumer", async () => {
    const at = await world();
    const { id } = await create(at, { type: "key", name: "phone" });
    at.control.credentialUse.touch([id]);
    at.control.runMaintenance();
    expect(at.use.size).toBe(1);
    const { removed } = await at.control.resources.consumers.remove("alice", {
      ...options,
      cascade: false,
    });
    expect(removed).toEqual(['credential "phone"']);
    expect([storedOf(at, id), at.use.size]).toEqual([undefined, 0]);
  });
});

describe("rotation", () => {
  const time = { value: Date.parse("2026-01-01T00:00:00Z") };
  const clock = { now: () => time.value };

  test.each(["key", "basic", "jwt", "hmac"])(
    "of %s keeps the old secret for a while",
    async (type) => {
      const at = await world(clock);
      const { credentials } = at.control;
      const made = await create(at, { type });
      const before = storedOf(at, made.id);
      const { view } = await credentials.rotate(made.id, { overlap_seconds: 60 }, options);
      const rotated = view as Shown;
      expect(rotated.secret).not.toBe(made.secret);
      expect(Date.parse(rotated.previous_until) - Date.parse(rotated.updated_at)).toBe(60_000);
      const { secret_hash, sealed_secret, previous } = storedOf(at, made.id);
      expect(previous).toEqual({
        secret_hash: before.secret_hash,
        sealed_secret: before.sealed_secret,
        until: rotated.previous_until,
      });
      expect([secret_hash, sealed_secret]).not.toEqual([before.secret_hash, before.sealed_secret]);
      // Other writes leave both alone.
      await credentials.patch(made.id, { name: "x" }, options);
      expect(storedOf(at, made.id)).toMatchObject({ secret_hash, sealed_secret, previous });
      time.value += 120_000;
      expect(credentials.get(made.id).view.previous_until).toBeNull();
    },
  );

  test("without overlap ends the old secret at once, and so does a secret from the client", async () => {
    const at = await world();
    const { credentials } = at.control;
    const { id } = await create(at, { type: "key" });
    await credentials.rotate(id, { overlap_seconds: 60 }, options);
    await credentials.rotate(id, undefined, options);
    expect(storedOf(at, id).previous).toBeNull();
    await credentials.rotate(id, { overlap_seconds: 60 }, options);
    await credentials.patch(id, { secret: "0123456789abcdef" }, options);
    expect(storedOf(at, id)).toMatchObject({ previous: null, prefix: "01234567" });
  });

  test("is rejected for key pairs, unknown credentials and wrong times", async () => {
    const at = await world();
    const { credentials } = at.control;
    const pem = publicPem(generateKeyPairSync("ed25519").publicKey);
    const { id } = await create(at, { type: "hmac", algorithm: "ed25519", public_key: pem });
    expect(await refusal(credentials.rotate(id, {}, options))).toBe(
      "400 algorithm: ed25519 has a key pair: write a new public_key",
    );
    expect(await refusal(credentials.rotate("none", {}, options))).toStartWith("404 ");
    expect(await refusal(credentials.rotate(id, { overlap_seconds: -1 }, options))).toStartWith(
      "400 overlap_seconds",
    );
    const stale = { ...options, conditions: { match: ["x"], onlyIfAbsent: false } };
    expect(await refusal(credentials.rotate(id, {}, stale))).toStartWith("412 ");
  });
});

const publicPem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();

describe("public keys", () => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const small = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const p521 = generateKeyPairSync("ec", { namedCurve: "P-521" });
  const edwards = generateKeyPairSync("ed25519");

  test.each([
    ["RS256", rsa.publicKey, null],
    ["PS512", rsa.publicKey, null],
    ["ES256", p256.publicKey, null],
    ["ES512", p521.publicKey, null],
    ["EdDSA", edwards.publicKey, null],
    ["RS256", small.publicKey, "must have at least 2048 bits"],
    ["RS256", p256.publicKey, "must be an RSA key for RS256"],
    ["ES384", p256.publicKey, "must be a key on the curve P-384 for ES384"],
    ["EdDSA", rsa.publicKey, "must be an Ed25519 key for EdDSA"],
  ])("for %s are of its kind", async (algorithm, key, problem) => {
    const at = await world();
    const written = create(at, { type: "jwt", algorithm, public_key: publicPem(key) });
    if (problem !== null) expect(await refusal(written)).toBe(`400 public_key: ${problem}`);
    else expect((await written).public_key).toBe(publicPem(key));
  });

  test("are stored in canonical form, and private keys not at all", async () => {
    const at = await world();
    const old = rsa.publicKey.export({ type: "pkcs1", format: "pem" }).toString();
    const fields = { type: "jwt", algorithm: "RS256" };
    const view = await create(at, { ...fields, public_key: old });
    expect(view.public_key).toBe(publicPem(rsa.publicKey));
    const secret = rsa.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    expect(await refusal(create(at, { ...fields, public_key: secret }))).toBe(
      "400 public_key: must be a public key, not a private one",
    );
    // A key pair in the place of a shared secret, and back.
    const shared = await create(at, { type: "jwt" });
    await at.control.credentials.patch(shared.id, { algorithm: "RS256", public_key: old }, options);
    expect(storedOf(at, shared.id)).toMatchObject({ sealed_secret: null, previous: null });
    const back = { algorithm: "HS256", public_key: null };
    expect(await refusal(at.control.credentials.patch(shared.id, back, options))).toBe(
      "400 secret: is required for HS256",
    );
  });
});

test("the last use is in memory, written periodically, and survives a restart", async () => {
  using directory = temporaryDirectory();
  using opened = openStore(directory.path);
  const store = opened.store.with((context) => new CredentialUseTable(context));
  const at = await world();
  const { id } = await create(at, { type: "key" });
  const { changes } = at.control;
  const log = createLog({ level: "info", format: "json", sink: () => {} });
  const clock = { now: () => Date.parse("2026-01-02T00:00:00Z") };
  const use = new CredentialUse({ changes, store, clock, log });
  use.touch([id, id, "deleted meanwhile"]);
  expect(store.load()).toEqual([]);
  use.flush();
  const rows = [{ id, last_used_at: "2026-01-02T00:00:00.000Z" }];
  expect(store.load()).toEqual(rows);
  expect(new CredentialUse({ changes, store, clock, log }).lastUsedAt(id)).toBe(
    rows[0]!.last_used_at,
  );
  await at.control.credentials.remove(id, { ...options, cascade: false });
  expect([use.lastUsedAt(id), store.load()]).toEqual([null, []]);
});
