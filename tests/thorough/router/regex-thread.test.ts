// The thread that checks regular expressions: verdicts, budget, turns.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { regexProblem } from "../../../src/snapshot/regex-safety.ts";
import { RegexChecker } from "../../../src/snapshot/regex-thread.ts";

const url = Bun.pathToFileURL(join(import.meta.dir, "../../../src/regex-checker.ts"));

/** An expression that no other test has asked for. */
const fresh = () => `^/t${process.hrtime.bigint()}\\d$`;

const problemsOf = async (checker: RegexChecker, sources: readonly string[]) =>
  await checker.run((check) => sources.map(check));

test.each([
  ["safe", "^/[a-z]+/x1$"],
  ["exponential", "^/(?:x2+)+$"],
  ["polynomial", "x3.*a.*b.*c$"],
  ["invalid", "x4("],
  ["too long", "x5".repeat(600)],
])("a verdict is that of the check itself: %s", async (_, source) => {
  const found = await problemsOf(new RegexChecker({ url }), [source]);
  expect(found).toEqual([regexProblem(source)]);
});

test("work runs again when all expressions that it has asked for have a verdict, and no more", async () => {
  const checker = new RegexChecker({ url });
  const sources = [fresh(), fresh()];
  const rounds: (string | null)[][] = [];
  const work = (check: (source: string) => string | null) => rounds.push(sources.map(check));
  await checker.run(work);
  expect(rounds).toEqual([
    ["is not checked yet", "is not checked yet"],
    [null, null],
  ]);
  await checker.run(work);
  expect(rounds).toHaveLength(3);
});

test("an error of the work counts when no expression is missing", async () => {
  const checker = new RegexChecker({ url });
  const source = fresh();
  let runs = 0;
  const work = (check: (source: string) => string | null) => {
    runs++;
    throw new Error(check(source) ?? "all checked");
  };
  await expect(checker.run(work)).rejects.toThrow("all checked");
  expect(runs).toBe(2);
});

test("beyond the budget an expression has a problem, and the next attempt goes on", async () => {
  const checker = new RegexChecker({ url, budgetMs: 0.01 });
  const sources = [fresh(), fresh()];
  const tooMany = expect.stringContaining("is one too many");
  expect(await problemsOf(checker, sources)).toEqual([null, tooMany]);
  expect(await problemsOf(checker, sources)).toEqual([null, null]);
});

test("what other nodes have decided has no budget", async () => {
  const checker = new RegexChecker({ url, budgetMs: 0.01 });
  const sources = [fresh(), fresh()];
  expect(await checker.run((check) => sources.map(check), false)).toEqual([null, null]);
});

test("work with one expression does not wait for work with many", async () => {
  const checker = new RegexChecker({ url });
  const done: string[] = [];
  const many = problemsOf(checker, Array.from({ length: 20 }, fresh)).then(() => done.push("many"));
  await problemsOf(checker, [fresh()]).then(() => done.push("one"));
  await many;
  expect(done).toEqual(["one", "many"]);
});

test("a thread that fails is an error of the work that waits for it", async () => {
  const checker = new RegexChecker({ url: new URL("file:///nothing/here.ts") });
  await expect(problemsOf(checker, [fresh()])).rejects.toThrow(
    "the thread that checks regular expressions has",
  );
});
