// The errors of user scripts when they are saved, before they run.
import { expect, test } from "bun:test";
import { compileScript } from "../../../src/plugins/script/source.ts";

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
