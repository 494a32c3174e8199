// The errors of user scripts when they are saved, before they run.
import { expect, test } from "bun:test";
import { compileScript, readingTime } from "../../../src/plugins/script/source.ts";

test("types are stripped", () => {
  const { code } = compileScript(
    "interface A { b: string }\nexport const onLog = (a: A): void => {};",
  );
  expect(code).toContain("onLog");
  expect(code).not.toContain("interface");
});

test.each([
  [
    "export function onRequest() {\n  let a = ;\n}",
    "cannot be read: line 2, column 11: Unexpected ;",
  ],
  ["let a = 1;", "must export one or more of onRequest, onResponse, onLog"],
  ["export default {}", 'exports "default"; it may only export onRequest, onResponse, onLog'],
  [
    "export function onReqest() {}",
    'exports "onReqest"; it may only export onRequest, onResponse, onLog',
  ],
  ['import fs from "fs";\nexport const onLog = () => fs;', 'must not import anything ("fs")'],
  ['export const onLog = () => import("fs");', 'must not import anything ("fs")'],
])("%j: %s", (source, problem) => {
  expect(compileScript(source)).toEqual({ code: null, problem });
});

test.each([
  { source: "x".repeat(65_536), time: "soon", why: "nothing that may begin types" },
  { source: `${"a<".repeat(100)}${"x".repeat(60_000)}`, time: "soon", why: "some comparisons" },
  { source: `${"a<".repeat(900)}${"x".repeat(60_000)}`, time: "long", why: "up to two seconds" },
  {
    source: "a<".repeat(32_000),
    time: { problem: "has 32000 signs <, and a source of its length may have 1000" },
    why: "over a minute",
  },
])("a script is read before its transpiler takes long: $why", ({ source, time }) => {
  expect(readingTime(source)).toEqual(time as ReturnType<typeof readingTime>);
});
