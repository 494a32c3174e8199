// Everything that is encrypted in a real database, before and after a change of keys.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openSecretBox, openSecretKey } from "../../../src/control/sealing.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { decode } from "../../../src/model/decode.ts";
import type { Secret } from "../../../src/model/secret.ts";
import { ssoRecord } from "../../../src/model/sso.ts";
import type { Store } from "../../../src/store/store.ts";
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

type Environment = Record<string, string | undefined>;

const opens = (dataDir: string, store: Store, env: Environment = {}) => {
  const key = openSecretKey({ dataDir, env, keyIds: store.sealedKeyIds() });
  store.secretKey.keeper = key;
  return key;
};

const filesOf = (dataDir: string) =>
  readdirSync(dataDir)
    .filter((name) => name.startsWith("secret"))
    .sort();

describe("a change of keys", () => {
  test("encrypts everything again, history included, and leaves no trace of the old key", () => {
    const { directory, opened: handle, store, box: former } = sealedDirectory();
    using _ = directory;
    using _store = handle;
    const old = former.keyId;
    expect(opened(former, textsOf(directory.path))).toEqual(everything);
    const key = opens(directory.path, store);
    store.record([key.offer(null)]);
    store.compact();
    const { box } = key;
    expect(box.keyId).not.toBe(old);
    expect(store.sealedKeyIds()).toEqual(new Set([box.keyId]));
    const again = openSecretBox({ dataDir: directory.path, env: {}, keyIds: store.sealedKeyIds() });
    expect(again.keyId).toBe(box.keyId);
    expect(opened(again, textsOf(directory.path))).toEqual(everything);
    const left = rawBytes(directory.path).match(new RegExp(`sealed:1:${old}:.{4}`, "g")) ?? [];
    expect(new Set(left)).toEqual(new Set([`sealed:1:${old}:AAAA`, `sealed:1:${old}:BBBB`]));
    expect([...store.load().config.services.values()][0]?.description).toBe(lookalike(old));
  });

  test("with a damaged value changes nothing at all", () => {
    const { directory, opened: handle, store, box } = sealedDirectory();
    using _ = directory;
    using _store = handle;
    const damaged = `${box.seal("x").slice(0, -4)}AAAA`;
    store.commit(commitOf(5, { secrets: upsert(secretOf("damaged", damaged)) }));
    const before = textsOf(directory.path);
    const key = opens(directory.path, store);
    const fact = key.offer(null);
    expect(() => store.secretKey.rehearse(fact)).toThrow("damaged");
    expect(() => store.record([fact])).toThrow(
      "a stored secret is damaged and cannot be decrypted; nothing was changed",
    );
    expect(textsOf(directory.path)).toBe(before);
    expect(key.box.keyId).toBe(box.keyId);
    const again = openSecretBox({ dataDir: directory.path, env: {}, keyIds: store.sealedKeyIds() });
    expect(again.keyId).toBe(box.keyId);
    expect(existsSync(join(directory.path, "secret.key.new"))).toBe(false);
  });

  test("that is rehearsed changes nothing", () => {
    const { directory, opened: handle, store, box } = sealedDirectory();
    using _ = directory;
    using _store = handle;
    const before = textsOf(directory.path);
    const key = opens(directory.path, store);
    store.secretKey.rehearse(key.offer(null));
    expect(textsOf(directory.path)).toBe(before);
    expect(key.box.keyId).toBe(box.keyId);
  });

  test.each([true, false])(
    "that dies between database and key file is completed at the next start (with secrets: %p)",
    (hasSecrets) => {
      const { directory, opened: handle, store, box } = sealedDirectory();
      using _ = directory;
      using _store = handle;
      if (!hasSecrets) {
        const database = new Database(join(directory.path, "sluice.db"));
        for (const table of ["secrets", "sso", "totp", "revisions"])
          database.run(`DELETE FROM ${table}`);
        database.close();
      }
      const key = opens(directory.path, store);
      store.secretKey.keeper = {
        begin: (fact) => {
          const replacement = key.begin(fact);
          return replacement && { ...replacement, finish: () => {} };
        },
      };
      const fact = key.offer(null);
      store.record([fact]);
      expect(filesOf(directory.path)).toEqual(["secret.key", "secret.key.new"]);
      const again = openSecretBox({
        dataDir: directory.path,
        env: {},
        keyIds: store.sealedKeyIds(),
      });
      expect(again.keyId).toBe(fact.key_id);
      expect(again.keyId).not.toBe(box.keyId);
      expect(filesOf(directory.path)).toEqual(["secret.key"]);
      if (hasSecrets) expect(opened(again, textsOf(directory.path))).toEqual(everything);
    },
  );

  test("that dies before the database goes on with the old key", () => {
    const { directory, opened: handle, store, box } = sealedDirectory();
    using _ = directory;
    using _store = handle;
    const key = opens(directory.path, store);
    key.begin(key.offer(null));
    expect(filesOf(directory.path)).toEqual(["secret.key", "secret.key.new"]);
    const again = openSecretBox({ dataDir: directory.path, env: {}, keyIds: store.sealedKeyIds() });
    expect(again.keyId).toBe(box.keyId);
    expect(filesOf(directory.path)).toEqual(["secret.key"]);
  });

  test("gives the same texts on every machine", () => {
    const key = new Uint8Array(32).fill(1);
    const boxes = [new SecretBox(key), new SecretBox(key)];
    const sealed = boxes[0]?.seal("value") ?? "";
    const renewed = boxes.map((box) => box.successor(new Uint8Array(32).fill(2)).renew(sealed));
    expect(renewed[0]).toBe(renewed[1] ?? "");
    expect(renewed[0]).not.toBe(sealed);
    const other = boxes[0]?.seal("value") ?? "";
    const next = boxes[0]?.successor(new Uint8Array(32).fill(2));
    expect(next?.renew(other)).not.toBe(renewed[0] ?? "");
    expect(next?.open(renewed[0] ?? "")).toBe("value");
  });

  test("gives all holders of the box the new one, which still opens what the old one sealed", () => {
    const box = new SecretBox(new Uint8Array(32).fill(1));
    const sealed = box.seal("value");
    const seen: string[] = [];
    box.onReplaced(() => seen.push(box.keyId));
    const next = box.successor(new Uint8Array(32).fill(2));
    box.replaceBy(next);
    expect(seen).toEqual([next.keyId]);
    expect(box.open(sealed)).toBe("value");
    expect(box.open(box.seal("other"))).toBe("other");
    expect(box.renew(`"${sealed}"`)).toContain(`sealed:1:${next.keyId}:`);
    const third = box.successor(new Uint8Array(32).fill(3));
    box.replaceBy(third);
    expect(box.open(sealed)).toBe("value");
    expect(() => new SecretBox(new Uint8Array(32).fill(3)).open(sealed)).toThrow("sealed under");
  });

  test("from variable to variable writes no file, and starts with either variable", () => {
    using directory = temporaryDirectory();
    using handle = openStore(directory.path);
    const { store } = handle;
    const [old = "", fresh = ""] = [1, 2].map((fill) => Buffer.alloc(32, fill).toString("base64"));
    const env: Environment = { SLUICE_SECRET_KEY: old };
    const key = opens(directory.path, store, env);
    store.commit(firstCommit);
    store.commit(commitOf(2, { secrets: upsert(secretOf("first", key.box.seal("value"))) }));
    expect(() => key.offer(null)).toThrow("SLUICE_NEW_SECRET_KEY: must contain the new key");
    expect(() => key.offer(old)).toThrow("must differ from the present key");
    expect(() => key.offer("short")).toThrow("SLUICE_NEW_SECRET_KEY: must be 32 bytes");
    store.record([key.offer(fresh)]);
    // For a process that takes over.
    expect(env["SLUICE_SECRET_KEY"]).toBe(fresh);
    const next = key.box.keyId;
    expect(store.sealedKeyIds()).toEqual(new Set([next]));
    expect(filesOf(directory.path)).toEqual([]);
    const starts = (variables: Environment) => opens(directory.path, store, variables).box.keyId;
    expect(starts({ SLUICE_SECRET_KEY: fresh })).toBe(next);
    expect(starts({ SLUICE_SECRET_KEY: old, SLUICE_NEW_SECRET_KEY: fresh })).toBe(next);
    expect(() => starts({ SLUICE_SECRET_KEY: old })).toThrow(
      `encrypted with the key ${next}, which was expected in SLUICE_SECRET_KEY`,
    );
  });
});
