// How tests run: plain `bun test`, their timeout, and that every skipped test gives its reason.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { bunTest } from "../support/bun-test.ts";
import { needs, packages } from "../support/needs.ts";

const root = resolve(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const own = "tests/integration/test-support.test.ts";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "sluice-bun-test-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const passing = 'import { test } from "bun:test";\ntest("passes", () => {});\n';

describe("plain bun test", () => {
  needs("linux").test("runs several files in parallel, and fails when one does", async () => {
    const failing = 'import { test } from "bun:test";\ntest("fails", () => { throw "no"; });\n';
    const good = await bunTest({ a: passing, b: passing, c: passing });
    expect([good.code, good.text]).toEqual([0, expect.stringMatching(/\dx PARALLEL/)]);
    expect(good.text).toContain("3 pass");
    const bad = await bunTest({ a: passing, b: failing });
    expect([bad.code, bad.text]).toEqual([1, expect.stringContaining("1 fail")]);
  });

  test("with other arguments passes them to Bun", async () => {
    const { code, text } = await bunTest({ a: passing, b: passing }, { words: ["./a.test.ts"] });
    expect([code, text]).toEqual([0, expect.stringContaining("1 pass")]);
    expect(text).not.toContain("PARALLEL");
  });

  test("gives every file a longer timeout than Bun's five seconds, not only the first", async () => {
    const slow = `import { test } from "bun:test";\ntest("takes long", () => Bun.sleep(5200));\n`;
    const { code, text } = await bunTest({ a: passing, b: slow }, { words: ["a", "b"] });
    expect([code, text]).toEqual([0, expect.stringContaining("2 pass")]);
  });

  test("searches the folder of the tests only", () => {
    const { test: section } = Bun.TOML.parse(read("bunfig.toml")) as { test: { root: string } };
    expect(section.root).toBe("tests");
    const others = [...new Bun.Glob("{src,scripts}/**/*{.,_}{test,spec}.*").scanSync(root)];
    expect(others.filter((path) => !path.includes("/node_modules/"))).toEqual([]);
    const programs = [...new Bun.Glob("tests/{bench,fuzz,soak}/**/*.test.ts").scanSync(root)];
    expect(programs).toEqual([]);
  });
});

describe("a test with needs", () => {
  const needy = `
    import { describe } from "bun:test";
    import { needs } from "ROOT/tests/support/needs.ts";
    const { test, beforeAll, afterEach } = needs("curl", { lacks: null });
    beforeAll(() => { throw "a hook ran"; });
    afterEach(() => { throw "a hook ran"; });
    describe("here", () => {
      test("asks", () => { throw "it ran"; });
      test.each([["this"], ["that"]])("asks for %s", () => { throw "it ran"; });
      test.concurrent("asks twice", () => { throw "it ran"; });
      test.if(true)("asks perhaps", () => { throw "it ran"; });
    });
    needs("curl", { lacks: "the moon" }).test("howls", () => {});
    needs({ lacks: "the moon" }).test("rises", () => {});
    needs().test("runs", () => {});
  `;

  test("is skipped with the reason where something is missing", async () => {
    const { code, text } = await bunTest({ a: needy }, { words: ["a"] });
    const reason = "(skipped: needs curl, which is not installed (Debian package curl))";
    for (const name of ["asks", "asks for this", "asks for that", "asks twice", "asks perhaps"])
      expect(text).toContain(`(skip) here > ${name} ${reason}`);
    expect(text).toContain(`(skip) howls ${reason}`);
    expect(text).toContain("(skip) rises (skipped: needs the moon)");
    expect(text).toContain("(pass) runs");
    expect([code, text]).toEqual([0, expect.stringContaining("7 skip")]);
    expect(text).not.toContain("ran");
  });

  test("fails where skips are forbidden, except for what the machine does not allow", async () => {
    const env = { SLUICE_SKIP_NOTHING: "1" };
    const { code, text } = await bunTest({ a: needy }, { words: ["a"], env });
    expect(code).toBe(1);
    expect(text).toContain("SLUICE_SKIP_NOTHING=1, but the tests need curl");
    const moon = `
      import { needs } from "ROOT/tests/support/needs.ts";
      needs({ lacks: "the moon" }).test("rises", () => {});
      needs("ipv6", "mount", "private network").test("connects", () => {});
    `;
    expect((await bunTest({ a: moon }, { words: ["a"], env })).code).toBe(0);
  });

  test("runs where nothing is missing", async () => {
    const met = `
      import { needs } from "ROOT/tests/support/needs.ts";
      const { test, beforeAll } = needs("curl");
      beforeAll(() => console.log("the hook ran"));
      test("asks", () => {});
    `;
    writeFileSync(join(directory, "curl"), "#!/bin/sh\n", { mode: 0o755 });
    const { code, text } = await bunTest({ a: met }, { words: ["a"], env: { PATH: directory } });
    expect([code, text]).toEqual([0, expect.stringContaining("1 pass")]);
    expect(text).toContain("the hook ran");
  });
});

describe("the tests of this project", () => {
  const files = [
    ...new Bun.Glob("tests/{unit,thorough,integration,e2e,support}/**/*.ts").scanSync(root),
  ]
    .filter((path) => path !== own && path !== "tests/support/needs.ts")
    .map((path) => ({ path, text: read(path) }));

  test("skip nothing without a reason", () => {
    const silent = /\b(?:test|describe|it)\.(?:skip|skipIf|if|todo)\b|\bBun\.which\b/;
    const found = files.filter(({ text }) => silent.test(text)).map(({ path }) => path);
    expect(found).toEqual([]);
  });

  test("declare in tests/e2e what they need", () => {
    const found = files
      .filter(({ path }) => path.startsWith("tests/e2e/") && path.endsWith(".test.ts"))
      // `useUi` of tests/support/ui-scene.ts calls `needs` with the executable and a browser.
      .filter(({ text }) => !/\b(?:needs|useUi)\(/.test(text))
      .map(({ path }) => path);
    expect(found).toEqual([]);
  });

  test("find in CI all the programs that they name", () => {
    const [, words] = /^test-e2e: build\n\t@scripts\/debian-packages\.sh (.+)$/m.exec(
      read("Makefile"),
    )!;
    const [, others] = /^ +scripts\/debian-packages\.sh (.+)$/m.exec(read(".ci/run"))!;
    const installed = `${words} ${others}`.split(" ");
    // Essential in Debian.
    expect(
      packages.filter((name) => !["bsdutils", "dpkg", "util-linux", ...installed].includes(name)),
    ).toEqual([]);
  });
});
