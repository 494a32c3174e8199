// Formats of entries: each entry has the lowest one that can hold it, and what is new has a line in the rules.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { local } from "../../../src/control/principal.ts";
import { type Entry, EntryCodec, needOf } from "../../../src/fleet/entry.ts";
import {
  type ChangedParts,
  ENTRY_FORMAT,
  formatNeed,
  type FormatRules,
  formatRules,
  type NewerPart,
  withNewer,
  withoutNewer,
} from "../../../src/fleet/entry-format.ts";
import { signNode } from "../../../src/fleet/node-row.ts";
import type { Fact } from "../../../src/model/fact.ts";
import { type GatewayConfig, wholeOf } from "../../../src/model/gateway-config.ts";
import { loadPlugins } from "../../../src/pdk/catalogue.ts";
import { pluginFiles } from "../../../src/plugins/index.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";
import { recordSchemas } from "../../../src/model/records.ts";
import { at } from "../store/fixture.ts";

const rulesWith = (...parts: NewerPart[]): FormatRules => ({
  facts: { ...formatRules.facts, node_drained: 3 },
  parts,
});
const drained: Fact = { kind: "node_drained", node_id: "n1", drained: true };
/** Objects as later versions may have them. */
const upserts = (collection: string, ...objects: object[]) =>
  ({ [collection]: { upserts: objects, removals: [] } }) as ChangedParts;

describe("the format that an entry needs", () => {
  const color = { since: 2, in: "services", field: "look.color", absent: "red" } as const;
  const cases: [what: string, rules: FormatRules, parts: ChangedParts, format: number][] = [
    ["an old field", rulesWith(color), upserts("services", { name: "a" }), 1],
    ["a default", rulesWith(color), upserts("services", { look: { color: "red" } }), 1],
    ["another value", rulesWith(color), upserts("services", {}, { look: { color: "blue" } }), 2],
    ["another collection", rulesWith(color), upserts("routes", { look: { color: "blue" } }), 1],
    [
      "a field in a list",
      rulesWith({ ...color, field: "hooks.color", absent: null }),
      upserts("services", { hooks: [{ color: null }, { color: "blue" }] }),
      2,
    ],
    [
      "a field without a default",
      rulesWith({ since: 2, in: "services", field: "color" }),
      upserts("services", { color: "red" }),
      2,
    ],
    [
      "a new plugin",
      rulesWith({ since: 3, in: "plugins", field: "name", values: ["mirror-ball"] }),
      upserts("plugins", { name: "cors" }, { name: "mirror-ball" }),
      3,
    ],
    [
      "a field of another plugin",
      rulesWith({ since: 2, in: "plugins", of: "cors", field: "config.color" }),
      upserts("plugins", { name: "csrf", config: { color: "red" } }),
      1,
    ],
    [
      "the default of a plugin",
      rulesWith({ since: 2, in: "plugins", of: "cors", field: "config.color", absent: "red" }),
      upserts("plugins", { name: "cors", config: { color: "red" } }),
      1,
    ],
    [
      "a new collection",
      rulesWith({ since: 2, in: "secrets" }),
      { secrets: { upserts: [], removals: ["x"] } } as ChangedParts,
      2,
    ],
  ];
  test.each(cases)("%s", (_, rules, change, format) => {
    expect(formatNeed({ change, facts: [] }, rules).format).toBe(format);
  });

  test("is that of the newest part, and all of them are named", () => {
    const change = upserts("services", { look: { color: "blue" } });
    expect(formatNeed({ change, facts: [drained] }, rulesWith(color))).toEqual({
      format: 3,
      because: ["node drained", "services.look.color"],
    });
  });
});

test("what has its default is left out of an older format, and comes back when it is read", () => {
  const rules = rulesWith(
    { since: 2, in: "services", field: "hooks.color", absent: "red" },
    { since: 2, in: "settings", field: "look", absent: { size: 1 } },
  );
  const change = {
    ...upserts("services", { name: "a", hooks: [{ at: 1, color: "red" }] }),
    settings: { a: 1, look: { size: 1 } },
  } as unknown as ChangedParts;
  const older = withoutNewer(change, 1, rules);
  expect(JSON.parse(JSON.stringify(older))).toEqual({
    services: { upserts: [{ name: "a", hooks: [{ at: 1 }] }], removals: [] },
    settings: { a: 1 },
  });
  expect(withNewer(older, 1, rules)).toEqual(change);
  expect(withoutNewer(change, 2, rules)).toEqual(change);
  expect(withNewer(older, 2, rules)).toEqual(older);
});

const bytes = (text: string) => Buffer.from(text, "base64url");
const codec = new EntryCodec("fleet", "key");

const changedOf = (config: GatewayConfig) => ({
  ...{ revision: 1, at, actor: "test", summary: "start", by: local, audit: [] },
  change: wholeOf(config),
});

describe("a listener, of the engine that is the default now", () => {
  const fields = { max_connections: 5, http2: true, client_auth: "none", max_header_bytes: 16_384 };
  const own = upserts("listeners", { name: "l", engine: "sluice", ...fields });
  const formatOf = (change: ChangedParts) => formatNeed({ change, facts: [] }).format;

  test("goes to nodes of any version as they know it, and comes back", () => {
    expect(formatOf(own)).toBe(1);
    for (const format of [1, 4, 8]) {
      const sent = withoutNewer(own, format);
      const [listener] = (sent.listeners?.upserts ?? []) as readonly { readonly engine?: string }[];
      expect(listener?.engine).toBe(format < 4 ? undefined : "standard");
      const read = withNewer(sent, format);
      expect(read.listeners?.upserts as object[]).toMatchObject([{ engine: "sluice", ...fields }]);
    }
    expect(withoutNewer(own, 9)).toEqual(own);
  });

  test("needs the present format for anything that it could not have before", () => {
    for (const more of [
      { engine: "bun", max_connections: 0 },
      { max_header_bytes: 16_385 },
      { client_auth: "require" },
    ])
      expect(
        formatOf(upserts("listeners", { name: "l", engine: "sluice", ...fields, ...more })),
      ).toBe(9);
  });
});

test("a configuration without anything new has format 1, where an older version finds only what it knows", () => {
  const config = emptyConfiguration(at);
  const changed = changedOf(config);
  const mark = { position: 1, id: Bun.randomUUIDv7() };
  const entry = codec.encode(mark, "n1", { changed, facts: [drained], previous: null });
  expect(entry.format).toBe(1);
  const { changed: written } = JSON.parse(
    new TextDecoder().decode(Bun.zstdDecompressSync(entry.body)),
  );
  expect(written.change.settings.fleet).toEqual({ max_stale_sessions: 900_000, max_stale: 0 });
  expect(codec.decode(entry).changed?.change.settings).toEqual(config.settings);
  const fleet = { ...config.settings.fleet, absent_after: 60_000 };
  const settings = { ...config.settings, fleet };
  expect(needOf({ changed: changedOf({ ...config, settings }), facts: [] })).toEqual({
    format: 2,
    because: ["settings.fleet.absent_after"],
  });
});

test("entries and rows of nodes are signed as by older versions, which verify them", () => {
  const entry: Entry = {
    ...{ kind: "change", position: 7, id: "1", node: "n1", format: 1 },
    body: bytes("KLUv_SArWQEAeyJjaGFuZ2VkIjpudWxsLCJmYWN0cyI6W10sInByZXZpb3VzIjpudWxsfQ"),
    mac: bytes("h5fwYKVbxZOS7FtwJl58orrlXXeLYQry1pyjWte3nyM"),
  };
  expect(codec.decode(entry)).toEqual({ changed: null, facts: [], previous: null });
  const { mac } = codec.encode({ position: 7, id: "1" }, "n1", codec.decode(entry));
  expect(Buffer.from(mac)).toEqual(bytes("h5fwYKVbxZOS7FtwJl58orrlXXeLYQry1pyjWte3nyM"));
  const row = {
    ...{ id: "1", name: "n1", url: "", version: "0.1.0", formatMax: 1, stored: 7, served: 6 },
    ...{ state: "serving", error: "", draining: true, clockOffsetMs: -3 },
  };
  expect(Buffer.from(signNode(codec, row))).toEqual(
    bytes("rl3mJI9Ml8moibEA862RGQ6Ka31h-qMn_jeLYahyZ4c"),
  );
});

/** Names of all fields and values: `services.name`, `plugins.cors.config.origins`, `routes.protocols=http`. */
function* namesOf(schema: TSchema, name: string): Generator<string> {
  yield name;
  const values =
    schema.enum ?? schema["x-names"] ?? (schema.const === undefined ? [] : [schema.const]);
  for (const value of values) yield `${name}=${value}`;
  for (const each of [...(schema.anyOf ?? []), ...(schema.allOf ?? [])]) yield* namesOf(each, name);
  if (schema.items !== undefined) yield* namesOf(schema.items, name);
  const { properties = {}, patternProperties = {} } = schema;
  for (const [key, member] of Object.entries<TSchema>(properties))
    yield* namesOf(member, `${name}.${key}`);
  for (const member of Object.values<TSchema>(patternProperties))
    yield* namesOf(member, `${name}.*`);
}

function covers({ in: collection, of, field, values }: NewerPart, name: string): boolean {
  const own = [collection, of, field].filter((part) => part !== undefined).join(".");
  if (values === undefined)
    return name === own || (/^[.=]/.test(name.slice(own.length)) && name.startsWith(own));
  return values.some((value) => name === `${own}=${value}` || name.startsWith(`plugins.${value}.`));
}

test("every field and value is in format 1, or has a line in src/fleet/entry-format.ts", async () => {
  const path = join(import.meta.dir, "format-1.txt");
  const first = new Set(readFileSync(path, "utf8").split("\n"));
  const names = new Set(
    Object.entries(recordSchemas).flatMap(([name, schema]) => [...namesOf(schema, name)]),
  );
  for (const { name, config } of await loadPlugins(pluginFiles))
    for (const field of namesOf(config, `plugins.${name}.config`)) names.add(field);
  const isKnown = (name: string) =>
    first.has(name) || formatRules.parts.some((part) => covers(part, name));
  expect([...names].filter((name) => !isKnown(name))).toEqual([]);
  // A line that names nothing would not be noticed otherwise.
  const isUsed = (part: NewerPart) => [...names].some((name) => covers(part, name));
  expect(formatRules.parts.filter((part) => !isUsed(part))).toEqual([]);
});

test("no rule needs a format that this version does not read", () => {
  const formats = [
    ...Object.values(formatRules.facts),
    ...formatRules.parts.map(({ since }) => since),
  ];
  expect(Math.max(...formats)).toBe(ENTRY_FORMAT);
});
