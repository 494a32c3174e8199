// The text of a plugin depends on its files alone: nodes of a fleet compare hashes of it, wherever their directories are.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { bundlePlugin } from "../../../src/plugin-directory/bundle.ts";
import { PluginFiles } from "../../support/own-plugin.ts";

const FILES = {
  "own/index.ts": `// A comment.
import { definePlugin } from "@sluice/plugin";
import { word } from "../_lib/word.ts";
import common from "./common.cjs";
import data from "./data.json";
export default definePlugin({ name: word, common, data, text: "// ./own.ts" });
`,
  "_lib/word.ts": 'export const word = "own";\n',
  "own/common.cjs": "module.exports = { a: 1 };\n",
  "own/data.json": '{ "b": 2 }\n',
};

async function textIn(place: string, files: Readonly<Record<string, string>>): Promise<string> {
  using root = new PluginFiles();
  for (const [name, text] of Object.entries(files)) root.write(join(place, name), text);
  const directory = join(root.path, place);
  const entry = join(directory, "own/index.ts");
  return (await bundlePlugin({ directory, entry, written: [] })).text;
}

test("the same files give the same text in each directory, other files another one", async () => {
  const text = await textIn(".", FILES);
  expect(await textIn("deep/below/plugins", FILES)).toBe(text);
  expect(await textIn(".", { ...FILES, "own/data.json": '{ "b": 3 }\n' })).not.toBe(text);
  expect(text).not.toContain("debugId");
  expect(text).not.toContain(process.cwd());
  expect(text).toContain("// ./own.ts");
});
