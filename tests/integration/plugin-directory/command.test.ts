// `sluice plugin`: a new plugin can be loaded, and its tests run against a gateway of the same program, without Bun.
import { afterAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program } from "../../support/gateway.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-plugin-command-"));
afterAll(() => rmSync(directory, { recursive: true }));

async function plugin(...words: string[]) {
  const run = Bun.spawn([...program(), "plugin", ...words, "--plugins-dir", directory], {
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: "/usr/bin:/bin", HOME: directory },
  });
  const [out, err] = await Promise.all([
    new Response(run.stdout).text(),
    new Response(run.stderr).text(),
  ]);
  return { code: await run.exited, text: out + err };
}

test("new writes a plugin that check accepts and whose tests pass", async () => {
  const made = await plugin("new", "greet");
  expect(made).toMatchObject({ code: 0 });
  expect(made.text).toContain(join(directory, "greet/index.test.ts"));
  const checked = await plugin("check");
  expect(checked).toMatchObject({ code: 0 });
  expect(checked.text).toMatch(/^greet\/index\.ts: greet can be loaded, sha256 [0-9a-f]{64}$/m);
  const tested = await plugin("test", "greet");
  expect(tested.text).toContain("2 pass");
  expect(tested.code).toBe(0);
});

test.each([
  { words: ["new", "greet"], says: "exists already" },
  { words: ["new", "cors"], says: 'the gateway has a plugin "cors" already' },
  { words: ["new", "../up"], says: "NAME must consist of" },
  { words: ["new"], says: "NAME must consist of" },
  { words: ["old"], says: "the command is one of" },
])("$words is refused", async ({ words, says }) => {
  const { code, text } = await plugin(...words);
  expect(text).toContain(says);
  expect(code).toBe(2);
});

test("a failing test and a plugin that cannot be loaded give the exit code 1", async () => {
  await plugin("new", "fails");
  writeFileSync(
    join(directory, "fails/index.ts"),
    'import "@sluice/plugin";\nexport default {\n  a: ,\n};\n',
  );
  const checked = await plugin("check");
  expect(checked).toMatchObject({ code: 1 });
  expect(checked.text).toContain("fails/index.ts:3: bundle: Unexpected ,");
  const tested = await plugin("test", "fails");
  expect(tested).toMatchObject({ code: 1 });
  expect(tested.text).toContain("fails/index.ts:3: bundle: Unexpected ,");
});

test("a directory that others can write to is refused", async () => {
  chmodSync(directory, 0o777);
  const { code, text } = await plugin("check");
  chmodSync(directory, 0o700);
  expect(code).toBe(1);
  expect(text).toContain("other users can write to it");
  expect(existsSync(join(directory, "greet/index.ts"))).toBe(true);
});
