// The tests and hooks of bun:test, whose failures print a report; it knows nothing of what the report says.
import * as bun from "bun:test";
import { reportOn, reportTimeouts } from "./failure-report.ts";

type Call = (...args: unknown[]) => unknown;

/**
 * Replaces `test` and the hooks in every file that imports them later. Bun 1.4.5 says nowhere else that a test failed: its hooks
 * get no result, and `expect` has no state.
 */
export function watchTests(timeoutMs: number): void {
  const all = { ...bun };
  const test = watched(all.test, timeoutMs);
  const hooks = Object.fromEntries(
    (["beforeAll", "beforeEach", "afterEach", "afterAll"] as const).map((name) => {
      const hook = all[name] as Call;
      return [
        name,
        (...args: unknown[]) => hook(...reporting([name, ...args], timeoutMs).slice(1)),
      ];
    }),
  );
  const replaced = { ...all, ...hooks, test, it: test };
  all.mock.module("bun:test", () => replaced);
  all.afterEach(reportTimeouts);
}

/** `test`, and what comes of it: `test.concurrent`, `test.each(table)`. */
function watched<T extends object>(test: T, timeoutMs: number, self?: object): T {
  const next = (value: unknown, owner?: object) =>
    typeof value === "function" ? watched(value, timeoutMs, owner) : value;
  return new Proxy(test, {
    // Its properties are accessors, which need the real object.
    get: (target, property) => next(Reflect.get(target, property, target), target),
    apply: (target, _self, args: unknown[]) =>
      next(Reflect.apply(target as Call, self, reporting(args, timeoutMs))),
  });
}

/** The arguments of `test(label, body, options)`, with a body that reports its failure. */
function reporting(args: unknown[], defaultMs: number): unknown[] {
  const [label] = args;
  const options = args.find((each) => typeof each === "number" || isTimed(each));
  const timeoutMs = isTimed(options) ? options.timeout : ((options as number) ?? defaultMs);
  return args.map((each) => {
    if (typeof each !== "function") return each;
    const body = (...row: unknown[]) => reportOn(String(label), timeoutMs, () => each(...row));
    // Bun passes a callback to a test that has a parameter more than its table has columns.
    return Object.defineProperty(body, "length", { value: each.length });
  });
}

const isTimed = (value: unknown): value is { timeout: number } =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, "timeout") === "number";
