// Every file of tests runs in exactly one step of .ci/run, as the Makefile and .ci/run say it.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const makefile = read("Makefile").replaceAll("\\\n", " ");
/** What `bun test` takes for a file of tests. */
const files = [
  ...new Bun.Glob("tests/**/*{.test,_test,.spec,_spec}.{ts,tsx,js,jsx,mjs,cjs}").scanSync(root),
];

/** The variables of the Makefile that are plain texts, and those of the command line. */
function expand(text: string, given: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$\(([A-Z_]+)\)/g, (_, name: string) => {
    const [, value = ""] = new RegExp(`^${name} \\??:?= *(.*)$`, "m").exec(makefile) ?? [];
    return expand(given.get(name) ?? value, given);
  });
}

/** Prerequisites and recipe of a target. */
function rule(target: string): { needs: string[]; recipe: string[] } {
  const [, needs = "", recipe = ""] =
    new RegExp(`^${target}:(?!=| export )([^\\n]*)\\n((?:\\t[^\\n]*\\n)*)`, "m").exec(makefile) ??
    [];
  return { needs: needs.split(/\s+/).filter(Boolean), recipe: recipe.split("\n").filter(Boolean) };
}

/** The commands of a target and of all that it makes, before it or from its recipe. */
function commandsOf(target: string, given: ReadonlyMap<string, string>): string[] {
  const { needs, recipe } = rule(target);
  return [
    ...needs.flatMap((need) => commandsOf(need, given)),
    ...recipe.flatMap((line) => {
      const command = expand(line, given);
      if (!line.includes("$(MAKE)")) return [command];
      const made = command.split(/\s+/).filter((word) => /^[a-z-]+$/.test(word));
      return made.flatMap((word) => commandsOf(word, given));
    }),
  ];
}

/** Folders, files and ignored patterns of a command; null: it runs no tests. */
function testsOf(command: string): { paths: string[]; ignored: string[] } | null {
  // The script divides what is in its folder.
  if (command.includes("scripts/test-e2e.sh")) return { paths: ["tests/e2e"], ignored: [] };
  if (!/\bbun test\b/.test(command)) return null;
  const words = command.split(/\s+/).map((word) => word.replaceAll(/['"]/g, ""));
  return {
    paths: words.filter((word) => word.startsWith("./tests")).map((word) => word.slice(2)),
    ignored: words.filter((_, at) => words[at - 1] === "--path-ignore-patterns"),
  };
}

function filesOf(target: string, given: ReadonlyMap<string, string> = new Map()): string[] {
  const runs = commandsOf(target, given)
    .map(testsOf)
    .filter((run) => run !== null);
  return runs.flatMap(({ paths, ignored }) =>
    files
      .filter((file) => paths.some((path) => file === path || file.startsWith(`${path}/`)))
      .filter((file) => !ignored.some((pattern) => new Bun.Glob(pattern).match(file))),
  );
}

/** The targets that .ci/run makes, with their variables. */
const steps = [
  ...read(".ci/run").matchAll(/^step \w+ (?:make ([\w-]+)|\$test_command)(.*)$/gm),
].map(([, target = "test", more = ""]) => ({
  target,
  given: new Map(
    [...more.matchAll(/"?([A-Z_]+)=([^"\n]*)"?/g)].map(([, name = "", value = ""]) => [
      name,
      value,
    ]),
  ),
}));

test(".ci/run makes these", () => {
  expect(steps.map(({ target }) => target)).toEqual(["check", "test", "test-e2e"]);
  for (const { target, given } of steps) expect(filesOf(target, given)).not.toEqual([]);
});

test("every file of tests runs in exactly one step of .ci/run", () => {
  const run = steps.flatMap(({ target, given }) => filesOf(target, given));
  expect(run.toSorted()).toEqual(files.toSorted());
});

test("make test runs all files but those of tests/e2e", () => {
  const own = files.filter((file) => !file.startsWith("tests/e2e/"));
  expect(filesOf("test").toSorted()).toEqual(own.toSorted());
});
