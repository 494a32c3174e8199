// Everything that is encrypted in a real database, before and after a change of keys.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { rotateKey } from "../../../src/control/key-rotation.ts";
import { openSecretBox } from "../../../src/control/sealing.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { decode } from "../../../src/model/decode.ts";
import type { Secret } from "../../../src/model/secret.ts";
import { ssoRecord } from "../../../src/model/sso.ts";
import { prepareNewKey } from "../../../src/store/secret-key.ts";
import {
  at,
  commitOf,
  firstCommit,
  openStore,
  serviceOf,
  temporaryDirectory,
  upsert,
} from "../store/fixture.ts";

const secretOf = (name: string, sealed: string): Secret => ({
  id: Bun.randomUUIDv7(),
  name,
  sealed_value: sealed,
  tags: [],
  description: "",
  created_at: at,
  updated_at: at,
});

/** A user's text in the form of a sealed value. */
const lookalike = (keyId: string) =>
  `see sealed:1:${keyId}:AAAA and "sealed":"sealed:1:${keyId}:BBBB"`;

/** A data directory with an encrypted value in each place that may hold one. */
function sealedDirectory() {
  const directory = temporaryDirectory();
  const opened = openStore(directory.path);
  const { store } = opened;
  const box = openSecretBox({ dataDir: directory.path, env: {}, keyIds: store.sealedKeyIds() });
  store.commit(firstCommit);
  const first = secretOf("first", box.seal("old value"));
  store.commit(commitOf(2, { secrets: upsert(first) }));
  const secrets = upsert(
    { ...first, sealed_value: box.seal("value of first") },
    secretOf("second", box.seal("välue 2")),
  );
  const description = lookalike(box.keyId);
  store.commit(commitOf(3, { secrets, services: upsert({ ...serviceOf("web"), description }) }));
  const client_secret = { sealed: box.seal("of the client") };
  store.commit(commitOf(4, { sso: { ...decode(ssoRecord, {}), client_secret, updated_at: at } }));
  const database = new Database(join(directory.path, "sluice.db"));
  database.run("INSERT INTO totp VALUES ('user', ?, 1, 0, '[]')", [box.seal("one time")]);
  database.close();
  return { directory, opened, store, box };
}

/** Everything in the file, even if the store cannot read it. */
function textsOf(dataDir: string): string {
  const database = new Database(join(dataDir, "sluice.db"), { readonly: true });
  const rows = ["secrets", "sso", "totp", "services", "revisions"].flatMap((table) =>
    database.query(`SELECT * FROM ${table}`).all(),
  );
  database.close();
  return JSON.stringify(rows);
}

const rawBytes = (dataDir: string) =>
  readdirSync(dataDir)
    .filter((name) => name.startsWith("sluice.db"))
    .map((name) => readFileSync(join(dataDir, name), "latin1"))
    .join("");

const opened = (box: SecretBox, text: string) =>
  [...text.matchAll(/sealed:1:[0-9a-f]{8}:[A-Za-z0-9_-]{30,}/g)]
    .map(([sealed]) => box.open(sealed))
    .sort();

const everything = [
  "of the client",
  "of the client",
  "old value",
  "one time",
  "value of first",
  "value of first",
  "välue 2",
  "välue 2",
];

describe("a change of keys", () => {
  test("encrypts everything again, history included, and leaves no trace of the old key", () => {
    const { directory, opened: handle, store, box } = sealedDirectory();
    using _ = directory;
    using _store = handle;
    expect(opened(box, textsOf(directory.path))).toEqual(everything);
    const next = rotateKey({ dataDir: directory.path, env: {}, store, box });
    expect(next.keyId).not.toBe(box.keyId);
    expect(opened(next, textsOf(directory.path))).toEqual(everything);
    expect(store.sealedKeyIds()).toEqual(new Set([next.keyId]));
    const left =
      rawBytes(directory.path).match(new RegExp(`sealed:1:${box.keyId}:.{4}`, "g")) ?? [];
    expect(new Set(left)).toEqual(
      new Set([`sealed:1:${box.keyId}:AAAA`, `sealed:1:${box.keyId}:BBBB`]),
    );
    expect([...store.load().config.services.values()][0]?.description).toBe(lookalike(box.keyId));
    const again = openSecretBox({ dataDir: directory.path, env: {}, keyIds: store.sealedKeyIds() });
    expect(again.keyId).toBe(next.keyId);
  });

  test("with a damaged value changes nothing at all", () => {
    const { directory, opened: handle, store, box } = sealedDirectory();
    using _ = directory;
    using _store = handle;
    const damaged = `${box.seal("x").slice(0, -4)}AAAA`;
    store.commit(commitOf(5, { secrets: upsert(secretOf("damaged", damaged)) }));
    const before = textsOf(directory.path);
    expect(() => rotateKey({ dataDir: directory.path, env: {}, store, box })).toThrow("damaged");
    expect(textsOf(directory.path)).toBe(before);
    const again = openSecretBox({ dataDir: directory.path, env: {}, keyIds: store.sealedKeyIds() });
    expect(again.keyId).toBe(box.keyId);
    expect(existsSync(join(directory.path, "secret.key.new"))).toBe(false);
  });

  test("that died between database and key file is completed at the next start", () => {
    const { directory, opened: handle, store, box } = sealedDirectory();
    using _ = directory;
    using _store = handle;
    const next = new SecretBox(prepareNewKey(directory.path));
    store.replaceSealed(
      (text) =>
        text.replaceAll(/sealed:1:[0-9a-f]{8}:[\w-]{30,}/g, (sealed) =>
          next.seal(box.open(sealed)),
        ),
      () => undefined,
    );
    const again = openSecretBox({ dataDir: directory.path, env: {}, keyIds: store.sealedKeyIds() });
    expect(again.keyId).toBe(next.keyId);
    expect(opened(again, textsOf(directory.path))).toEqual(everything);
  });

  test("from variable to variable writes no file", () => {
    using directory = temporaryDirectory();
    using handle = openStore(directory.path);
    const { store } = handle;
    const [old, fresh] = [1, 2].map((fill) => Buffer.alloc(32, fill).toString("base64"));
    const env = { SLUICE_SECRET_KEY: old, SLUICE_NEW_SECRET_KEY: fresh };
    const box = openSecretBox({ dataDir: directory.path, env, keyIds: store.sealedKeyIds() });
    store.commit(firstCommit);
    store.commit(commitOf(2, { secrets: upsert(secretOf("first", box.seal("value"))) }));
    const rotate = (variables: Record<string, string | undefined>) =>
      rotateKey({ dataDir: directory.path, env: variables, store, box });
    expect(() => rotate({ SLUICE_SECRET_KEY: old })).toThrow(
      "SLUICE_NEW_SECRET_KEY: must contain the new key",
    );
    expect(() => rotate({ SLUICE_SECRET_KEY: old, SLUICE_NEW_SECRET_KEY: old })).toThrow(
      "must differ from the present key",
    );
    expect(() => rotate({ SLUICE_NEW_SECRET_KEY: fresh })).toThrow("only valid together");
    const next = rotate(env);
    expect(store.sealedKeyIds()).toEqual(new Set([next.keyId]));
    expect(readdirSync(directory.path).filter((name) => name.startsWith("secret"))).toEqual([]);
    const now = { SLUICE_SECRET_KEY: fresh };
    expect(
      openSecretBox({ dataDir: directory.path, env: now, keyIds: store.sealedKeyIds() }).keyId,
    ).toBe(next.keyId);
  });
});
