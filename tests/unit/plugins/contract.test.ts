// What every plugin must have: a described configuration with defaults, errors that name the field, and a page.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TSchema } from "@sinclair/typebox";
import { pageOf, listPage } from "../../../scripts/plugin-page.ts";
import { decode } from "../../../src/model/decode.ts";
import { ApiError } from "../../../src/model/error.ts";
import { catalogueOf, lazyPlugins } from "../../../src/pdk/catalogue.ts";
import { pluginFiles } from "../../../src/plugins/index.ts";
import { phaseNames } from "../../../src/pdk/definition.ts";
import { textsOf } from "../../../src/pdk/fields.ts";
import { plugins } from "../../support/plugins.ts";
import { compile } from "../../../src/snapshot/compile.ts";
import { at, configOf, context, service } from "../control/fixture.ts";

/** Changes only how a page is laid out. */
const laidOut = (page: string) =>
  page
    .replaceAll(/-{3,}/g, "---")
    .replaceAll(/[ \t]+/g, " ")
    .replaceAll(/\n{2,}/g, "\n");

const docs = join(import.meta.dir, "../../../docs/plugins");
const read = (name: string) => readFileSync(join(docs, name), "utf8");

interface Field {
  readonly path: string;
  readonly schema: TSchema;
  readonly isRequired: boolean;
}

function fieldsOf(schema: TSchema, prefix = ""): Field[] {
  const properties = (schema.properties ?? {}) as Record<string, TSchema>;
  const required = (schema.required ?? []) as string[];
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = prefix + name;
    const own = { path, schema: field, isRequired: required.includes(name) };
    const parts = [field, field.items as TSchema, ...((field.anyOf ?? []) as TSchema[])];
    return [
      own,
      ...parts.flatMap((part) =>
        part?.properties === undefined ? [] : fieldsOf(part, `${path}.`),
      ),
    ];
  });
}

/** What is wrong with a configuration, as the gateway says it. */
function problemOf(schema: TSchema, config: unknown): string | null {
  try {
    decode(schema, config);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

test("no two plugins have the same name or the same order", () => {
  expect(catalogueOf(plugins).size).toBe(plugins.length);
  const orders = new Set(plugins.map(({ order }) => order));
  expect(orders.size).toBe(plugins.length);
});

test("every plugin is listed under its own name, and found by it alone", async () => {
  expect(plugins.map(({ name }) => name)).toEqual(Object.keys(pluginFiles));
  const source = lazyPlugins(pluginFiles);
  for (const plugin of plugins) expect(await source.get(plugin.name)).toBe(plugin);
  for (const name of ["toString", "no-such-plugin"]) expect(await source.get(name)).toBeUndefined();
});

describe.each(plugins.map((plugin) => [plugin.name, plugin] as const))("%s", (name, plugin) => {
  test("describes itself", () => {
    expect(name).toMatch(/^[a-z][a-z0-9-]+$/);
    expect(plugin.summary).toMatch(/^[A-Z].{10,}[^.]$/);
    expect(plugin.description.length).toBeGreaterThan(80);
    expect(plugin.scopes.length).toBeGreaterThan(0);
    expect(plugin.phases.length).toBeGreaterThan(0);
    for (const phase of plugin.phases) expect(phaseNames).toContain(phase);
  });

  test("describes every setting, and has a default for those that are not required", () => {
    for (const { path, schema, isRequired } of fieldsOf(plugin.config)) {
      expect(`${path}: ${schema.description ?? ""}`).toMatch(/: .{5,}/);
      const isOptional = schema[Symbol.for("TypeBox.Optional") as unknown as string] !== undefined;
      if (isRequired && !isOptional && schema.default === undefined)
        expect(fieldsOf(plugin.config).some((field) => field.path === path)).toBe(true);
    }
  });

  test("accepts its example, and its defaults when nothing is required", () => {
    expect(problemOf(plugin.config, plugin.example)).toBeNull();
    const needed = fieldsOf(plugin.config).filter(
      ({ path, schema, isRequired }) =>
        isRequired && !path.includes(".") && schema.default === undefined,
    );
    if (needed.length === 0) expect(problemOf(plugin.config, {})).toBeNull();
    else expect(problemOf(plugin.config, {})).toContain("is required");
  });

  test("rejects invalid values, and names the field", () => {
    expect(problemOf(plugin.config, { ...plugin.example, nonsense: 1 })).toBe(
      "nonsense: is not a known field",
    );
    for (const { path, schema } of fieldsOf(plugin.config)) {
      if (path.includes(".") || schema.type === undefined) continue;
      const wrong = schema.type === "object" || schema.type === "array" ? 7 : { wrong: true };
      expect(problemOf(plugin.config, { ...plugin.example, [path]: wrong })).toStartWith(path);
    }
  });

  test("compiles with its example in each of its scopes", () => {
    const texts = textsOf(plugin.config, plugin.example);
    const named = (kind: string) =>
      texts.filter((text) => text.kind === kind).map(({ value }) => String(value));
    const services = [...new Set(["web", ...named("service")])].map((id) => service(id));
    const consumers = [...new Set(["alice", ...named("consumer")])].map((username) => ({
      id: username,
      username,
      custom_id: null,
      groups: [],
      enabled: true,
      tags: [],
      description: "",
      created_at: at,
      updated_at: at,
    }));
    const config = {
      ...configOf({ services }),
      consumers: new Map(consumers.map((consumer) => [consumer.id, consumer])),
      plugins: new Map([
        [
          "p",
          {
            id: "p",
            name,
            label: null,
            service_id: plugin.scopes.includes("service") ? "web" : null,
            route_id: null,
            consumer_id: null,
            stream_route_id: null,
            config: plugin.example,
            priority: null,
            when: null,
            on_error: null,
            enabled: true,
            tags: [],
            description: "",
            created_at: at,
            updated_at: at,
          },
        ],
      ]),
    };
    const result = compile(config, null, { ...context, revision: 1 });
    expect("issues" in result ? result.issues : []).toEqual([]);
  });

  test("has a page that is up to date (make docs)", () => {
    expect(existsSync(join(docs, `${name}.md`))).toBe(true);
    expect(laidOut(read(`${name}.md`))).toBe(laidOut(pageOf(plugin)));
  });
});

test("the list of plugins is up to date (make docs)", () => {
  expect(laidOut(read("README.md"))).toBe(laidOut(listPage(plugins)));
});
