// Holds the sources to the rooms and arrows of the house, and shows that the checker would notice a breach.
import { describe, expect, test } from "bun:test";

import { checkSources, needlessTypeArrows } from "./architecture/checker.ts";
import { readingSet } from "./architecture/reading-set.ts";
import { OPENS_CONNECTIONS, ROOMS, TYPE_ARROWS, WAYS_OUT } from "./architecture/rules.ts";
import { readSources } from "./architecture/sources.ts";

const TOP = "// A file of this test; knows nothing of anything else.\n";

/** Gives every file the comment sentence that it needs, so that a case shows its own breach only. */
function sources(files: Readonly<Record<string, string>>): Map<string, string> {
  return new Map(Object.entries(files).map(([path, text]) => [path, TOP + text]));
}

describe("the sources of Sluice", () => {
  test("keep to the rooms, the arrows and the sizes of the house", () => {
    expect(checkSources(readSources()).join("\n")).toBe("");
  });

  test("are found at all", () => {
    expect(readSources().size).toBeGreaterThan(5);
  });
});

describe("connections outwards", () => {
  // The UI runs in the browser; its only server is the management API.
  const opening = () =>
    [...readSources()]
      .filter(
        ([path, text]) => !path.startsWith("ui/") && OPENS_CONNECTIONS.test(withoutComments(text)),
      )
      .map(([path]) => path);
  const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");

  test("are opened by the dialer and by the files of the list", () => {
    expect(opening().filter((path) => WAYS_OUT[path] === undefined)).toEqual([]);
  });

  test("have no line in the list without a file that opens one", () => {
    const found = opening();
    expect(Object.keys(WAYS_OUT).filter((path) => !found.includes(path))).toEqual([]);
  });

  test.each([
    "const response = await fetch(url);",
    "return fetch(url, init);",
    "const made = await (parts.fetch ?? globalThis.fetch)(url);",
    'import { connect } from "node:net";',
    'import { isIP, connect as open, type Socket } from "node:net";',
    'import {\n  createSocket,\n} from "node:dgram";',
    'import { request } from "node:https";',
    'import * as net from "net";',
    'const { Socket } = await import("node:net");',
    "Bun.connect({ hostname, port, socket });",
    "new WebSocket(url);",
    'import { SQL } from "bun";',
  ])("are recognized in %s", (text) => {
    expect(OPENS_CONNECTIONS.test(text)).toBe(true);
  });

  test.each([
    "const response = await dialer.fetch(url);",
    "const socket = dialer.connect({ host, port });",
    'import { isIP, type Socket } from "node:net";',
    'import type { connect } from "node:net";',
    "  async fetch(request, self) {",
  ])("are not seen in %s", (text) => {
    expect(OPENS_CONNECTIONS.test(text)).toBe(false);
  });
});

describe("the table of rooms", () => {
  test("names only rooms that have a row", () => {
    const named = Object.values(ROOMS).flatMap((room) => [
      ...(typeof room.imports === "string" ? [] : room.imports),
      ...(room.except ?? []),
    ]);
    expect(named.filter((name) => ROOMS[name] === undefined)).toEqual([]);
  });

  test("has no arrow for types that no import needs, or that leads to no room", () => {
    const rooms = Object.keys(TYPE_ARROWS).flatMap((arrow) => arrow.split(" -> "));
    expect(rooms.filter((name) => ROOMS[name] === undefined)).toEqual([]);
    expect(needlessTypeArrows(readSources())).toEqual([]);
  });
});

describe("whoever reads one file has to read", () => {
  // `make reading-set FILE=src/control/change.ts` prints the whole set.
  test.each([["control/change.ts", 145, 18_000]])(
    "with types, for %s at most %d files and %d lines",
    (path, mostFiles, mostLines) => {
      const { files, lines } = readingSet(readSources(), path);
      expect(files.size).toBeLessThanOrEqual(mostFiles);
      expect(lines).toBeLessThanOrEqual(mostLines);
    },
  );

  test("what is imported by way of others, types and what is loaded later too", () => {
    const files = {
      "http/a.ts": 'import type { B } from "./b.ts";\nexport type A = B;\n',
      "http/b.ts": 'export const load = () => import("./c.ts");\nexport type B = 1;\n',
      "http/c.ts": 'export { d } from "./d.ts";\n',
      "http/d.ts": "export const d = 1;\n",
      "http/e.ts": "export const e = 1;\n",
    };
    const { files: found, lines } = readingSet(sources(files), "http/a.ts");
    expect([...found.keys()]).toEqual(["http/a.ts", "http/b.ts", "http/c.ts", "http/d.ts"]);
    expect(lines).toBe(10);
    expect(() => readingSet(sources(files), "http/x.ts")).toThrow("there is no src/http/x.ts");
  });
});

describe("the checker refuses", () => {
  const value = "export const value = 1;\n";
  test.each([
    {
      why: "an arrow that the table does not have",
      files: {
        "plugins/cors.ts": 'import { value } from "../store/rows.ts";\nexport default value;\n',
        "store/rows.ts": value,
      },
      says: "plugins/cors.ts imports store/rows.ts, but plugins may not import store, because",
    },
    {
      why: "an arrow of types that no table has",
      files: {
        "plugins/cors.ts":
          'import type { value } from "../store/rows.ts";\nexport type V = typeof value;\n',
        "store/rows.ts": value,
      },
      says: "plugins/cors.ts imports types of store/rows.ts, but plugins may not import store, because",
    },
    {
      why: "a forbidden re-export",
      files: {
        "model/route.ts": 'export * from "../http/fields.ts";\n',
        "http/fields.ts": value,
      },
      says: "model/route.ts imports http/fields.ts, but model may not import http",
    },
    {
      why: "a forbidden dynamic import",
      files: {
        "api/server.ts": 'export const load = () => import("../store/rows.ts");\n',
        "store/rows.ts": value,
      },
      says: "api may not import store",
    },
    {
      why: "a command that reaches into the data plane",
      files: {
        "cli/serve.ts": 'import { value } from "../dataplane/router.ts";\nexport default value;\n',
        "dataplane/router.ts": value,
      },
      says: "cli may not import dataplane, because traffic is served in workers only",
    },
    {
      why: "an import of an entry file",
      files: {
        "cli/serve.ts": 'import { value } from "../worker.ts";\nexport default value;\n',
        "worker.ts": value,
      },
      says: "cli/serve.ts imports worker.ts, but nothing may",
    },
    {
      why: "an import by a file that everything imports",
      files: {
        "log.ts": 'import { value } from "./model/route.ts";\nexport default value;\n',
        "model/route.ts": value,
      },
      says: "log.ts may not import model",
    },
    {
      why: "a circle of two files",
      files: {
        "http/a.ts": 'import { b } from "./b.ts";\nexport const a = () => b;\n',
        "http/b.ts": 'import { a } from "./a.ts";\nexport const b = () => a;\n',
      },
      says: "circle: http/a.ts -> http/b.ts -> http/a.ts",
    },
    {
      why: "a circle that does not contain the first file",
      files: {
        "http/a.ts": 'import { b } from "./b.ts";\nexport const a = () => b;\n',
        "http/b.ts": 'import { c } from "./c.ts";\nexport const b = () => c;\n',
        "http/c.ts": 'import { b } from "./b.ts";\nexport const c = () => b;\n',
      },
      says: "circle: http/b.ts -> http/c.ts -> http/b.ts",
    },
    {
      why: "a circle of types where none may be",
      files: {
        "dataplane/a.ts": 'import type { B } from "./b.ts";\nexport type A = B;\n',
        "dataplane/b.ts": 'import type { A } from "./a.ts";\nexport type B = A | null;\n',
      },
      says: "circle: dataplane/a.ts -> dataplane/b.ts -> dataplane/a.ts",
    },
    {
      why: "a file over the limit",
      files: { "http/long.ts": "export {};\n".repeat(400) },
      says: "http/long.ts has 401 lines",
    },
    {
      why: "the web framework outside the API",
      files: { "control/a.ts": 'import { Elysia } from "elysia";\nexport default Elysia;\n' },
      says: "imports the package elysia, but only api may",
    },
    {
      why: "a plugin of the web framework outside the API",
      files: {
        "control/a.ts": 'import { swagger } from "@elysiajs/swagger";\nexport default swagger;\n',
      },
      says: "only api may",
    },
    {
      why: "the query builder outside the store",
      files: { "control/a.ts": 'import { eq } from "drizzle-orm";\nexport default eq;\n' },
      says: "only store may, because one room writes the database",
    },
    {
      why: "a subpath of the query builder outside the store",
      files: { "api/a.ts": 'import { x } from "drizzle-orm/bun-sqlite";\nexport default x;\n' },
      says: "only store may",
    },
    {
      why: "SQLite outside the store",
      files: { "api/a.ts": 'import { Database } from "bun:sqlite";\nexport default Database;\n' },
      says: "only store may",
    },
    {
      why: "React outside the UI",
      files: { "api/a.ts": 'import { jsx } from "react/jsx-runtime";\nexport default jsx;\n' },
      says: "only ui may",
    },
    {
      why: "the component library outside the UI",
      files: { "api/a.ts": 'import { Box } from "@mantine/core";\nexport default Box;\n' },
      says: "only ui may",
    },
    {
      why: "a package of the gateway in the UI",
      files: { "ui/a.tsx": 'import { Type } from "@sinclair/typebox";\nexport default Type;\n' },
      says: "ui may import its own packages only",
    },
    {
      why: "a module of the runtime in the UI",
      files: { "ui/a.tsx": 'import { join } from "node:path";\nexport default join;\n' },
      says: "ui may import its own packages only",
    },
    {
      why: "a value of the model in the UI",
      files: {
        "ui/a.tsx": 'import { value } from "../model/a.ts";\nexport default value;\n',
        "model/a.ts": value,
      },
      says: "ui may not import model",
    },
    {
      why: "the plots of the UI elsewhere",
      files: { "control/a.ts": 'import uPlot from "uplot";\nexport default uPlot;\n' },
      says: "only ui may",
    },
    {
      why: "input and output in a pure room",
      files: { "http/a.ts": 'import { connect } from "node:net";\nexport default connect;\n' },
      says: "http is pure",
    },
    {
      why: "an import without its extension",
      files: { "http/a.ts": 'import { b } from "./b";\nexport default b;\n', "http/b.ts": value },
      says: "without its file extension",
    },
    {
      why: "an import of a file that is not there",
      files: { "http/a.ts": 'import { b } from "./b.ts";\nexport default b;\n' },
      says: "http/b.ts, which does not exist",
    },
    {
      why: "an import from outside src/",
      files: { "http/a.ts": 'import { b } from "../../tests/b.ts";\nexport default b;\n' },
      says: "lies outside src/",
    },
    {
      why: "an asset that the room may not embed",
      files: {
        "api/a.ts":
          'import sql from "../../drizzle/0000.sql" with { type: "text" };\nexport default sql;\n',
      },
      says: "api/a.ts embeds drizzle/0000.sql",
    },
    {
      why: "a macro without a row",
      files: {
        "ui/a.ts":
          'import { b } from "../control/b.ts" with { type: "macro" };\nexport default b();\n',
        "control/b.ts": value,
      },
      says: "ui/a.ts runs control/b.ts at build time",
    },
    {
      why: "the same file without being a macro",
      files: {
        "ui/a.ts": 'import { b } from "../model/form-schema.ts";\nexport default b;\n',
        "model/form-schema.ts": value,
      },
      says: "ui may not import model",
    },
    {
      why: "the address of the worker outside main.ts",
      files: { "supervisor/pool.ts": 'new Worker(new URL("../worker.ts", import.meta.url));\n' },
      says: "only main.ts may",
    },
    {
      why: "a folder without a row",
      files: { "backend/a.ts": value },
      says: '"backend" is not in the table',
    },
    {
      why: "a name that says nothing",
      files: { "http/utils.ts": value },
      says: "http/utils.ts has a name that does not say",
    },
    {
      why: "a drawer for everything",
      files: { "http/common/fields.ts": value },
      says: "does not say what is inside",
    },
    {
      why: "a file of types",
      files: { "model/types.ts": value },
      says: "does not say what is inside",
    },
  ])("$why", ({ files, says }) => {
    const breaches = checkSources(sources(files));
    expect(breaches.filter((breach) => breach.includes(says))).toHaveLength(1);
  });

  test.each([
    { why: "no comment", text: "export const value = 1;\n" },
    { why: "a comment that is no sentence", text: "// Router.\nexport const value = 1;\n" },
    { why: "an empty file", text: "" },
  ])("a file without a sentence at its top: $why", ({ text }) => {
    expect(checkSources(new Map([["http/a.ts", text]])).join()).toContain("comment sentence");
  });
});

describe("the checker accepts", () => {
  test.each([
    {
      why: "a type for which there is an arrow of types",
      files: {
        "ui/a.tsx": 'import type { A } from "../model/a.ts";\nexport type B = A;\n',
        "model/a.ts": "export type A = 1;\n",
      },
    },
    {
      why: "the log and the clock in every room",
      files: {
        "http/a.ts": 'import { log } from "../log.ts";\nexport default log;\n',
        "log.ts": "export const log = 1;\n",
      },
    },
    {
      why: "an arrow of the table",
      files: {
        "api/a.ts": 'import { b } from "../control/b.ts";\nexport default b;\n',
        "control/b.ts": 'import { c } from "../store/c.ts";\nexport const b = c;\n',
        "store/c.ts": 'import { eq } from "drizzle-orm";\nexport const c = eq;\n',
      },
    },
    {
      why: "two ways to one file, which are no circle",
      files: {
        "http/a.ts":
          'import { b } from "./b.ts";\nimport { c } from "./c.ts";\nexport const a = [b, c];\n',
        "http/b.ts": 'import { c } from "./c.ts";\nexport const b = c;\n',
        "http/c.ts": "export const c = 1;\n",
      },
    },
    {
      why: "a migration in the store",
      files: {
        "store/a.ts":
          'import sql from "../../drizzle/0000.sql" with { type: "text" };\nexport default sql;\n',
      },
    },
    {
      why: "a macro of the table",
      files: {
        "ui/a.ts":
          'import { b } from "../model/form-schema.ts" with { type: "macro" };\nexport default b();\n',
        "model/form-schema.ts": "export const b = () => 1;\n",
      },
    },
    { why: "a file of exactly the limit", files: { "http/a.ts": "export {};\n".repeat(399) } },
  ])("$why", ({ files }) => {
    expect(checkSources(sources(files))).toEqual([]);
  });
});
