// Nothing runs while a plugin is bundled, however its source asks for it: each case would write a file.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { bundlePlugin, PluginError } from "../../../src/plugin-directory/bundle.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";

let files: PluginFiles;
let mark: string;

beforeEach(() => {
  files = new PluginFiles();
  mark = join(files.path, "ran.txt");
  const write = `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(mark)}, "");\n`;
  files.write("_macro.ts", `${write}export const run = () => "x";\nexport default run;\n`);
  // Of anyone on the machine.
  chmodSync(join(files.path, "_macro.ts"), 0o666);
});
afterEach(() => files[Symbol.dispose]());

/** The refusal; null: it was bundled. */
async function refusalOf(head: string, name = "own.ts"): Promise<string | null> {
  files.write(name, `${pluginSource("own", { head })}\nexport const used = [run, run()];\n`);
  const source = { directory: files.path, entry: join(files.path, name), written: [] };
  try {
    await bundlePlugin(source);
    return null;
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    return error.problem.message;
  }
}

const MACRO = "macros are not run";
const UNTRUSTED = "other users can write to it";

describe("a macro is refused and does not run:", () => {
  test.each([
    ["as documented", `import { run } from "./_macro.ts" with { type: "macro" };`, MACRO],
    [
      "with the older keyword",
      `import { run } from "./_macro.ts" assert { type: "macro" };`,
      MACRO,
    ],
    ["in single quotes", `import { run } from "./_macro.ts" with { 'type': 'macro' };`, MACRO],
    ["without spaces", `import{run}from"./_macro.ts"with{type:"macro"};`, MACRO],
    [
      "an escape in the value",
      `import { run } from "./_macro.ts" with { type: "\\x6dacro" };`,
      MACRO,
    ],
    [
      "a code point in the value",
      `import { run } from "./_macro.ts" with { type: "\\u{6d}acro" };`,
      MACRO,
    ],
    [
      "an escape in the name",
      `import { run } from "./_macro.ts" with { "ty\\u0070e": "macro" };`,
      MACRO,
    ],
    [
      "comments between the words",
      `import { run } from "./_macro.ts" with /* } */ { /**/ type /**/ : /* " */ "macro" };`,
      MACRO,
    ],
    [
      "a comment to the end of the line",
      `import { run } from "./_macro.ts" with { // }\n type: "macro" };`,
      MACRO,
    ],
    ["the prefix", `import { run } from "macro:./_macro.ts";`, MACRO],
    ["an escape in the prefix", `import { run } from "\\x6dacro:./_macro.ts";`, MACRO],
    ["a comment before the prefix", `import { run } from /* " */ "macro:./_macro.ts";`, MACRO],
    ["a default import", `import run from "./_macro.ts" with { type: "macro" };`, MACRO],
    [
      "a renamed import",
      `import { default as run } from "./_macro.ts" with { type: "macro" };`,
      MACRO,
    ],
    [
      "all of a module",
      `import * as all from "./_macro.ts" with { type: "macro" };\nconst run = () => all.run();`,
      MACRO,
    ],
    ["a line continued", `import { run } from "./_macro.ts" with { type: "mac\\\nro" };`, MACRO],
    // These are no macros to the parser: the module itself is loaded, and its rights refuse it.
    [
      "a second attribute",
      `import { run } from "./_macro.ts" with { type: "ts", type2: "macro" };`,
      UNTRUSTED,
    ],
    [
      "a dynamic import",
      `const { run } = await import("./_macro.ts", { with: { type: "macro" } });`,
      UNTRUSTED,
    ],
    ["a call of require", `const { run } = require("./_macro.ts");`, UNTRUSTED],
    [
      "a re-export",
      `export { run } from "./_macro.ts" with { type: "macro" };\nconst run = () => 1;`,
      'cannot be used with "type": "macro"',
    ],
  ])("%s", async (_why, head, says) => {
    expect(await refusalOf(head)).toContain(says);
    expect(existsSync(mark)).toBe(false);
  });

  test("in a file that the plugin imports", async () => {
    files.write(
      "_part.ts",
      `import { run } from "./_macro.ts" with { type: "\\x6dacro" };\nexport { run };\nrun();\n`,
    );
    expect(await refusalOf(`import { run } from "./_part.ts";`)).toContain(MACRO);
    expect(existsSync(mark)).toBe(false);
  });

  test("of a package, and one that package.json names", async () => {
    const macros = { words: { run: "./_macro.ts" } };
    files.write("package.json", JSON.stringify({ macros, bun: { macros } }));
    files.write("node_modules/words/index.js", 'export const run = () => "real";\n');
    files.write(
      "bunfig.toml",
      `preload = ["./_macro.ts"]\n[macros]\nwords = { run = "./_macro.ts" }\n`,
    );
    expect(await refusalOf(`import { run } from "words";`)).toBe(null);
    expect(await refusalOf(`import { run } from "words" with { type: "macro" };`)).toContain(MACRO);
    expect(existsSync(mark)).toBe(false);
  });
});

describe("no other file gets into the text or stays an import of it:", () => {
  test("an attribute that would read a file when the plugin runs", async () => {
    files.write("note.txt", "hidden");
    const head = `import note from "./note.txt" with { type: "sqlite" };\nconst run = () => note;`;
    expect(await refusalOf(head)).toBe(
      "./note.txt: only code, JSON, YAML, TOML and text can be imported",
    );
  });

  test("a page, as the name of a file", async () => {
    files.write("page.html", "<p>");
    const head = `import page from "./page.html" with { type: "file" };\nconst run = () => page;`;
    expect(await refusalOf(head)).toContain("only code");
  });

  test("a link in a directory of another user leads to no trusted file", async () => {
    files.write("trusted/part.ts", "export const run = () => 1;\n");
    mkdirSync(join(files.path, "open"));
    chmodSync(join(files.path, "open"), 0o777);
    symlinkSync(join(files.path, "trusted/part.ts"), join(files.path, "open/part.ts"));
    expect(await refusalOf(`import { run } from "./trusted/part.ts";`)).toBe(null);
    expect(await refusalOf(`import { run } from "./open/part.ts";`)).toContain(UNTRUSTED);
  });

  test.each(["package.json", "tsconfig.json"])("a %s that others can write", async (name) => {
    files.write("trusted/part.ts", "export const run = () => 1;\n");
    const head = `import { run } from "./trusted/part.ts";`;
    files.write(name, "{}");
    expect(await refusalOf(head)).toBe(null);
    chmodSync(join(files.path, name), 0o666);
    expect(await refusalOf(head)).toContain(UNTRUSTED);
  });
});
