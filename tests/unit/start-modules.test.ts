// The modules that `sluice serve` and its threads load at the start: what few gateways use is loaded when they use it.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const source = join(import.meta.dir, "../../src");
const transpiler = new Bun.Transpiler({ loader: "ts" });

/** What loads with these files of src/: files of src/ and names of packages, without what is imported while it runs. */
function loadedWith(...entries: readonly string[]): Set<string> {
  const loaded = new Set(entries);
  // A set gives what is added while it is walked through, too.
  for (const path of loaded) {
    if (!path.endsWith(".ts")) continue;
    const file = join(source, path);
    for (const { kind, path: name } of transpiler.scanImports(readFileSync(file, "utf8"))) {
      if (kind !== "import-statement") continue;
      if (!name.startsWith(".")) loaded.add(name);
      else if (existsSync(join(dirname(file), name)))
        loaded.add(relative(source, join(dirname(file), name)));
    }
  }
  return loaded;
}

/** The management API is imported after the workers have started. */
const gateway = loadedWith("main.ts", "api/server.ts");
const seldom =
  /^(import\/(convert|kong\/|caddy\/|npm\/|transfer\/yaml)|js-yaml|oauth4webapi|jose|arctic|nodemailer|acme-client|maxmind)/;
const matching = (loaded: Set<string>, pattern: RegExp) =>
  [...loaded].filter((name) => pattern.test(name));

test("are found at all", () => {
  expect(gateway).toContain("control/change.ts");
  expect(gateway).toContain("elysia");
  expect(loadedWith("import/convert.ts")).toContain("import/kong/kong.ts");
  expect(loadedWith("import/transfer/yaml.ts")).toContain("js-yaml");
});

test("of the gateway hold no importer, YAML parser or client of other services", () => {
  expect(matching(gateway, seldom)).toEqual([]);
});

test("of a worker hold nothing of the management API", () => {
  const worker = loadedWith("worker.ts");
  expect(worker).toContain("dataplane/server/socket-listener.ts");
  expect(matching(worker, /^(api|control|import|store|auth)\/|^(elysia|drizzle-orm)/)).toEqual([]);
  expect(matching(worker, seldom)).toEqual([]);
});

test("of the thread that reads files hold neither importers nor the YAML parser", () => {
  expect(matching(loadedWith("importer.ts"), /^(import\/(convert|kong|caddy)|js-yaml)/)).toEqual(
    [],
  );
});
