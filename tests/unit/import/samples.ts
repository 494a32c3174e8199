// The sample configurations of other programs, and converting them with the plugins that the gateway has.
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseJson } from "../../../src/api/json-body.ts";
import { type Conversion, convert } from "../../../src/import/convert.ts";
import type { FindFile } from "../../../src/import/npm/tables.ts";
import type { ImportChoice, ImportSource } from "../../../src/import/programs.ts";
import type { SourceTree } from "../../../src/import/set-up/tree.ts";
import { catalogueOf } from "../../../src/pdk/catalogue.ts";
import type { AnyPlugin } from "../../../src/pdk/definition.ts";
import { plugins } from "../../support/plugins.ts";
import { openTables } from "../../../src/import/foreign-tables.ts";

const fixtures = join(import.meta.dir, "../../fixtures/import");
const read = (name: string) => readFileSync(join(fixtures, name), "utf8");

/** The database as it would be after these statements, too. */
export function npmDatabase(...statements: readonly string[]): Uint8Array {
  const database = new Database(":memory:");
  for (const statement of [read("npm.sql"), ...statements]) database.run(statement);
  const bytes = database.serialize();
  database.close();
  return bytes;
}

// biome-ignore lint/suspicious/noExplicitAny: tests read documents of every shape
export type Anything = any;

export const kongSample = (): Anything => Bun.YAML.parse(read("kong.yaml"));
export const caddySample = (): Anything => JSON.parse(read("caddy.json"));

export const bytesOf = (value: unknown): Uint8Array =>
  new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));

export const convertWith = (
  from: ImportSource,
  source: unknown,
  own: readonly AnyPlugin[] = plugins,
  findFile?: FindFile,
): Promise<Conversion & { document: Anything }> =>
  convert(from, source instanceof Uint8Array ? source : bytesOf(source), {
    plugins: catalogueOf(own),
    parseJson,
    openTables,
    ...(findFile === undefined ? {} : { findFile }),
  });

export const convertTree = (
  from: ImportChoice,
  tree: SourceTree,
): Promise<Conversion & { document: Anything }> =>
  convert(from, tree, { plugins: catalogueOf(plugins), parseJson, openTables });
