// Where the key comes from, which files are rejected, and how an interrupted key rotation recovers.
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import {
  finishRotation,
  loadSecretKey,
  prepareNewKey,
  secretKeyPath,
} from "../../../src/store/secret-key.ts";
import { temporaryDirectory } from "./fixture.ts";

const idOf = (key: Uint8Array) => new SecretBox(key).keyId;
const usedBy = (...keys: Uint8Array[]) => ({ ids: new Set(keys.map(idOf)), idOf });
const keyOf = (fill: number) => new Uint8Array(32).fill(fill);

const load = (dataDir: string, stored = usedBy(), env: Record<string, string> = {}) =>
  loadSecretKey({ dataDir, env, stored });

const put = (dataDir: string, name: string, bytes: Uint8Array) =>
  writeFileSync(join(dataDir, name), bytes, { mode: 0o600 });

describe("a key file", () => {
  test("is created once, readable by its owner only, and found again", () => {
    using directory = temporaryDirectory();
    const first = load(directory.path);
    expect(first.source).toBe("file");
    expect(first.key.byteLength).toBe(32);
    const { mode, size } = statSync(secretKeyPath(directory.path));
    expect(mode & 0o777).toBe(0o600);
    expect(size).toBe(32);
    expect(load(directory.path).key).toEqual(first.key);
  });

  test.each([
    ["is open to its group", 0o640],
    ["is open to everybody", 0o604],
    ["can be written by others", 0o602],
  ])("that %s is rejected", (_, mode) => {
    using directory = temporaryDirectory();
    load(directory.path);
    chmodSync(secretKeyPath(directory.path), mode);
    expect(() => load(directory.path)).toThrow("run chmod 600");
    expect(statSync(secretKeyPath(directory.path)).mode & 0o777).toBe(mode);
  });

  test.each([0, 31, 33, 4096])("of %p bytes is rejected", (length) => {
    using directory = temporaryDirectory();
    put(directory.path, "secret.key", new Uint8Array(length));
    expect(() => load(directory.path)).toThrow("must hold 32 bytes");
  });

  test("that is a symbolic link is rejected, wherever it points", () => {
    using directory = temporaryDirectory();
    put(directory.path, "elsewhere", keyOf(1));
    symlinkSync(join(directory.path, "elsewhere"), secretKeyPath(directory.path));
    expect(() => load(directory.path)).toThrow("symbolic link");
  });

  test("that cannot decrypt stored values is rejected with the id of the key that can", () => {
    using directory = temporaryDirectory();
    put(directory.path, "secret.key", keyOf(1));
    const refusal = () => load(directory.path, usedBy(keyOf(2)));
    expect(refusal).toThrow(`with the key ${idOf(keyOf(2))}`);
    expect(refusal).toThrow(`expected in ${secretKeyPath(directory.path)}`);
    expect(refusal).toThrow(`the key there is ${idOf(keyOf(1))}`);
  });

  test("is not created again while stored values need the missing one", () => {
    using directory = temporaryDirectory();
    expect(() => load(directory.path, usedBy(keyOf(2)))).toThrow("but there is none");
    expect(existsSync(secretKeyPath(directory.path))).toBe(false);
  });
});

describe("a key in a variable", () => {
  const key = new Uint8Array(Array.from({ length: 32 }, (_, index) => index * 8));
  const bytes = Buffer.from(key);

  test.each([
    ["base64", bytes.toString("base64")],
    ["base64 without padding", bytes.toString("base64").replace("=", "")],
    ["base64url", bytes.toString("base64url")],
    ["hexadecimal", bytes.toString("hex")],
    ["capital hexadecimal with a line feed", `${bytes.toString("hex").toUpperCase()}\n`],
  ])("may be written as %s", (_, text) => {
    using directory = temporaryDirectory();
    const loaded = load(directory.path, usedBy(), { SLUICE_SECRET_KEY: text });
    expect(loaded).toEqual({ key, source: "variable" });
    expect(existsSync(secretKeyPath(directory.path))).toBe(false);
  });

  test.each([
    "",
    "short",
    bytes.toString("base64").slice(0, 40),
    `${bytes.toString("hex")}00`,
    "!".repeat(43),
  ])("with the value %p is rejected without repeating it", (text) => {
    using directory = temporaryDirectory();
    const refusal = () => load(directory.path, usedBy(), { SLUICE_SECRET_KEY: text });
    expect(refusal).toThrow("SLUICE_SECRET_KEY: must be 32 bytes");
    if (text !== "") expect(refusal).not.toThrow(text);
  });

  test("that cannot decrypt stored values is rejected", () => {
    using directory = temporaryDirectory();
    const env = { SLUICE_SECRET_KEY: bytes.toString("hex") };
    expect(() => load(directory.path, usedBy(keyOf(2)), env)).toThrow("in SLUICE_SECRET_KEY");
  });
});

describe("an interrupted key rotation", () => {
  /** A directory with an old key, and beside it a new one. */
  function begun() {
    const directory = temporaryDirectory();
    const old = load(directory.path).key;
    const next = prepareNewKey(directory.path);
    return { directory, old, next };
  }

  const isSettled = (dataDir: string, key: Uint8Array) => {
    expect(readFileSync(secretKeyPath(dataDir))).toEqual(Buffer.from(key));
    expect(existsSync(join(dataDir, "secret.key.new"))).toBe(false);
  };

  test("while the new key was written continues with the old one", () => {
    const { directory, old } = begun();
    using _ = directory;
    put(directory.path, "secret.key.new", new Uint8Array(7));
    expect(load(directory.path, usedBy(old)).key).toEqual(old);
    isSettled(directory.path, old);
  });

  test("before anything was encrypted again continues with the old key", () => {
    const { directory, old } = begun();
    using _ = directory;
    expect(load(directory.path, usedBy(old)).key).toEqual(old);
    isSettled(directory.path, old);
  });

  test("after everything was encrypted again continues with the new key", () => {
    const { directory, next } = begun();
    using _ = directory;
    expect(load(directory.path, usedBy(next)).key).toEqual(next);
    isSettled(directory.path, next);
  });

  test("after the new key was in place has nothing left to do", () => {
    const { directory, next } = begun();
    using _ = directory;
    finishRotation(directory.path);
    expect(load(directory.path, usedBy(next)).key).toEqual(next);
    isSettled(directory.path, next);
  });

  test("with nothing stored continues with the old key", () => {
    const { directory, old } = begun();
    using _ = directory;
    expect(load(directory.path).key).toEqual(old);
    isSettled(directory.path, old);
  });

  test("at the first start keeps the created key", () => {
    using directory = temporaryDirectory();
    const made = prepareNewKey(directory.path);
    expect(load(directory.path).key).toEqual(made);
    isSettled(directory.path, made);
  });
});
