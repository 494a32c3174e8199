// Which files the gateway runs: only those that no other user can change, on the whole way to them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  readRegular,
  readTrusted,
  requireApart,
  TrustError,
  trustedPath,
} from "../../../src/control/trusted-file.ts";
import { needs } from "../../support/needs.ts";

const root = mkdtempSync(join(tmpdir(), "sluice-trust-"));
const at = (...names: string[]) => join(root, ...names);

beforeAll(() => {
  for (const name of ["open", "safe", "safe/inner", "sticky"]) mkdirSync(at(name), { mode: 0o755 });
  for (const file of [
    "safe/a.ts",
    "safe/inner/b.ts",
    "open/c.ts",
    "sticky/d.ts",
    "safe/foreign.ts",
  ])
    writeFileSync(at(file), `// ${file}`, { mode: 0o644 });
  for (const [name, mode] of [
    ["group.ts", 0o664],
    ["others.ts", 0o646],
  ] as const) {
    writeFileSync(at("safe", name), "", { mode: 0o644 });
    chmodSync(at("safe", name), mode);
  }
  chmodSync(at("open"), 0o777);
  chmodSync(at("sticky"), 0o1777);
  symlinkSync("../safe/a.ts", at("safe/inner/link.ts"));
  symlinkSync(at("open/c.ts"), at("safe/outside.ts"));
  symlinkSync(at("safe"), at("open/back"));
  symlinkSync("loop.ts", at("safe/loop.ts"));
  symlinkSync("../../safe", at("safe/inner/up"));
});
afterAll(() => rmSync(root, { recursive: true }));

describe("a file is read", () => {
  test.each([
    { file: "safe/a.ts", why: "plain", text: "// safe/a.ts" },
    { file: "safe/inner/b.ts", why: "below", text: "// safe/inner/b.ts" },
    {
      file: "sticky/d.ts",
      why: "others cannot replace it in a sticky directory",
      text: "// sticky/d.ts",
    },
    { file: "safe/inner/up/a.ts", why: "a link to a directory", text: "// safe/a.ts" },
  ])("$file: $why", ({ file, text }) => expect(readTrusted(at(file)).toString()).toBe(text));
});

describe("a file is refused", () => {
  test.each([
    { file: "safe/group.ts", why: "its group can write", says: "group.ts: other users can write" },
    { file: "safe/others.ts", why: "others can write", says: "others.ts: other users can write" },
    { file: "open/c.ts", why: "others can replace it", says: "open: other users can write" },
    { file: "safe/outside.ts", why: "a link leads there", says: "open: other users can write" },
    {
      file: "open/back/a.ts",
      why: "others can replace the link",
      says: "open: other users can write",
    },
    { file: "safe/loop.ts", why: "a link to itself", says: "too many symbolic links" },
    { file: "safe", why: "a directory", says: "is not a file" },
  ])("$file: $why", ({ file, says }) => {
    expect(() => readTrusted(at(file))).toThrow(TrustError);
    expect(() => readTrusted(at(file))).toThrow(says);
  });

  needs({ lacks: process.getuid?.() === 0 ? null : "root" }).test(
    "that belongs to another user",
    () => {
      const other = 4711;
      chownSync(at("safe/foreign.ts"), other, other);
      expect(() => trustedPath(at("safe/foreign.ts"))).toThrow("belongs to the user 4711");
      expect(trustedPath(at("safe/foreign.ts"), other)).toBe(at("safe/foreign.ts"));
    },
  );

  test("that is a pipe, without waiting for its writer", () => {
    Bun.spawnSync(["mkfifo", "-m", "644", at("safe/pipe.ts")]);
    expect(() => readTrusted(at("safe/pipe.ts"))).toThrow("is not a file");
  });

  test("that is not there, and one in a directory that is written to", () => {
    expect(() => readTrusted(at("safe/none.ts"))).toThrow("none.ts: does not exist");
    expect(() => readTrusted(at("safe/inner/up/a.ts"), { written: [at("safe")] })).toThrow(
      "itself writes to",
    );
    expect(readTrusted(at("safe/a.ts"), { written: [at("safe/inner")] }).toString()).toBe(
      "// safe/a.ts",
    );
  });

  test("that is larger than 8 MB, and not at 8 MB", () => {
    writeFileSync(at("safe/large.ts"), Buffer.alloc(8 * 1024 * 1024), { mode: 0o644 });
    expect(readTrusted(at("safe/large.ts"))).toHaveLength(8 * 1024 * 1024);
    writeFileSync(at("safe/large.ts"), Buffer.alloc(8 * 1024 * 1024 + 1), { mode: 0o644 });
    expect(() => readTrusted(at("safe/large.ts"))).toThrow("is larger than 8 MB");
  });
});

describe("a file that anybody may have made", () => {
  test("is read up to the limit, and not beyond it", () => {
    writeFileSync(at("open/limit"), "12345678");
    expect(readRegular(at("open/limit"), 8).toString()).toBe("12345678");
    expect(() => readRegular(at("open/limit"), 7)).toThrow("limit: is larger than 7 bytes");
  });

  test("is bounded, too, where the system tells no size", () => {
    expect(readRegular("/proc/self/status").toString()).toContain("Name:");
    expect(() => readRegular("/proc/self/status", 100)).toThrow("is larger than 100 bytes");
  });

  test.each([
    { path: "/dev/zero", why: "it has no end" },
    { path: "/dev/tty", why: "opening it may act on it" },
    { path: "/proc", why: "a directory" },
  ])("is never $path: $why", ({ path }) => {
    const link = at("open", path.replaceAll("/", "-"));
    symlinkSync(path, link);
    for (const one of [path, link]) expect(() => readRegular(one)).toThrow("is not a file");
  });

  test("is no pipe and no socket", async () => {
    Bun.spawnSync(["mkfifo", at("open/pipe")]);
    expect(() => readRegular(at("open/pipe"))).toThrow("is not a file");
    const server = Bun.listen({ unix: at("open/socket"), socket: { data: () => undefined } });
    expect(() => readRegular(at("open/socket"))).toThrow("is not a file");
    server.stop(true);
  });
});

test("links stay within the directory, wherever the rest of the way is trusted", () => {
  const within = at("safe/inner");
  expect(readTrusted(at("safe/inner/b.ts"), { within }).toString()).toBe("// safe/inner/b.ts");
  symlinkSync("b.ts", at("safe/inner/c.ts"));
  expect(readTrusted(at("safe/inner/c.ts"), { within }).toString()).toBe("// safe/inner/b.ts");
  symlinkSync("/dev/zero", at("safe/inner/zero.ts"));
  symlinkSync("../a.ts", at("safe/inner/above.ts"));
  for (const name of ["above.ts", "zero.ts"])
    expect(() => readTrusted(join(within, name), { within })).toThrow("leads out of the directory");
});

describe("directories are apart", () => {
  test.each([
    { real: "safe", written: "safe", isApart: false },
    { real: "safe/inner", written: "safe", isApart: false },
    { real: "safe", written: "safe/inner", isApart: false },
    { real: "safe", written: "open/back/inner", isApart: false },
    // The same inode under another path, as a directory that is mounted twice.
    { real: "open/back/inner", written: "safe", isApart: false },
    { real: "safe/inner", written: "open/back/inner/later", isApart: false },
    { real: "safe", written: "safe/not-yet", isApart: false },
    { real: "safe/in", written: "safe/inner", isApart: true },
    { real: "sticky", written: "safe", isApart: true },
  ])("$real and $written: $isApart", ({ real, written, isApart }) => {
    const check = () => requireApart(at(real), [at("none"), at(written)]);
    if (isApart) expect(check).not.toThrow();
    else expect(check).toThrow(TrustError);
  });
});
