// The definition of a plugin from a directory as data: the same schema arrives, and what is wrong is named.
import { describe, expect, test } from "bun:test";
import { definitionFrom, plainDefinition } from "../../../src/plugin-directory/definition.ts";
import { describePlugin } from "../../../src/control/plugin-description.ts";
import { decode } from "../../../src/model/decode.ts";
import type { PluginDefinition } from "../../../src/pdk/definition.ts";
import * as kit from "../../../src/pdk/index.ts";
import { plugins } from "../../support/plugins.ts";

const { config, t } = kit;
const code = { hash: "00", text: new SharedArrayBuffer(1), number: 1, disabled: null };
const own: PluginDefinition = {
  name: "own",
  summary: "A plugin",
  description: "Of a test",
  group: "content",
  order: 1,
  phases: ["access"],
  scopes: ["global"],
  config: config({}),
  example: {},
  onError: "open",
  create: () => ({}),
};
/** As a message between threads carries it. */
const sent = (definition: unknown, name = "own") =>
  structuredClone(plainDefinition(definition, name));

describe("arrives as it was", () => {
  test.each(plugins.map((plugin) => [plugin.name, plugin] as const))("%s", (name, plugin) => {
    // What a directory plugin cannot have.
    const { metrics: _m, cache: _c, regexes: _r, feed: _f, ...rest } = plugin;
    const arrived = definitionFrom(sent(rest, name), code);
    const { source: ____, hash: _____, ...described } = describePlugin(arrived);
    expect(described).toEqual(
      (({ source: _a, hash: _b, ...all }) => all)(describePlugin(plugin)) as never,
    );
    expect(decode(arrived.config, plugin.example)).toEqual(decode(plugin.config, plugin.example));
    expect(() => decode(arrived.config, { ...plugin.example, nonsense: 1 })).toThrow(
      "nonsense: is not a known field",
    );
  });
});

describe("is refused", () => {
  const secretField = kit.secret({ description: "A key" });
  const word = t.String({ description: "A word", default: "x" });
  test.each([
    [null, "the default export must be what definePlugin returns"],
    [{ ...own, name: "other" }, 'name: must be "own"'],
    [{ ...own, summary: " " }, "summary: must be a text"],
    [{ ...own, group: "other" }, "group: must be one of authentication"],
    [{ ...own, order: 100_001 }, "order: must be an integer from 0 to 100000"],
    [{ ...own, order: 1.5 }, "order: must be an integer"],
    [{ ...own, phases: [] }, "phases: must be a list of connect"],
    [{ ...own, phases: ["early"] }, "phases: must be a list of connect"],
    [{ ...own, scopes: ["everywhere"] }, "scopes: must be a list of global"],
    [{ ...own, onError: "maybe" }, 'onError: must be "open" or "closed"'],
    [{ ...own, handlerTimeoutMs: 0 }, "handlerTimeoutMs: must be an integer from 1 to 600000"],
    [{ ...own, handlerTimeoutMs: 600_001 }, "handlerTimeoutMs: must be an integer"],
    [{ ...own, create: undefined }, "create: must be a function"],
    [{ ...own, needsAdmin: "yes" }, "needsAdmin: must be true or false"],
    [{ ...own, ignoresPath: 1 }, "ignoresPath: must be true or false"],
    [{ ...own, config: undefined }, "config: must be made with config()"],
    [{ ...own, example: { a: 1 } }, "example: does not match config: a: is not a known field"],
    [{ ...own, config: config({ word: { ...word, default: () => 1 } as never }) }, "functions"],
    [
      { ...own, config: config({ word: t.Transform(word).Decode(Number).Encode(String) }) },
      "functions",
    ],
    [{ ...own, regexes: () => [] }, "regexes: make the fields with regex()"],
    [{ ...own, cache: {} }, "cache: a plugin from a directory cannot store responses"],
    [
      {
        ...own,
        config: config({ list: kit.listOf(config({ key: secretField }), { description: "Keys" }) }),
      },
      "config.list.key: a secret needs stays",
    ],
  ])("%o: %s", (definition, message) => {
    expect(() => sent(definition)).toThrow(message);
  });

  test("but not at the limits", () => {
    for (const fields of [
      { order: 0 },
      { order: 100_000 },
      { handlerTimeoutMs: 1 },
      { handlerTimeoutMs: 600_000 },
    ])
      expect(sent({ ...own, ...fields })).toMatchObject({ name: "own" });
  });

  test("that it ignores the path arrives, and is false where nothing says so", () => {
    expect(sent({ ...own, ignoresPath: true })).toMatchObject({ ignoresPath: true });
    expect(sent(own)).toMatchObject({ ignoresPath: false });
  });

  test("and a secret with a destination is accepted", () => {
    const fields = {
      key: t.Optional(secretField),
      to: kit.destination(kit.url({ description: "Where it is sent", default: "" })),
    };
    expect(sent({ ...own, config: config(fields) })).toMatchObject({ name: "own" });
  });
});

test("the kit has all that the documented example imports", async () => {
  const page = await Bun.file(`${import.meta.dir}/../../../docs/writing-a-plugin.md`).text();
  const source = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const names = [...source.matchAll(/^import \{ ([^}]+) \} from "\.\.\/pdk/gm)].flatMap(
    ([, list = ""]) => list.split(", "),
  );
  expect(names.length).toBeGreaterThan(4);
  for (const name of names) expect(Object.keys(kit)).toContain(name);
});
