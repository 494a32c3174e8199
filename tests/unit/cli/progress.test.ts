// What commands say of long work, and of files that they cannot read.
import { expect, test } from "bun:test";
import { fileProblem, writeProblem } from "../../../src/model/file-problem.ts";
import { takeOperand } from "../../../src/cli/operands.ts";
import { createCompletion } from "../../../src/cli/completion.ts";

test("files are named in words", () => {
  const missing = Object.assign(new Error("ENOENT: no such file"), { code: "ENOENT" });
  expect(fileProblem(missing)).toBe("does not exist: check the path");
  expect(writeProblem(missing)).toBe("its directory does not exist: create it");
  expect(fileProblem(new Error("odd"))).toBe("odd");
});

test("a missing operand is a sentence", () => {
  expect(() => takeOperand([], [], "FILE")).toThrow("FILE is missing");
  const completion = createCompletion(() => []);
  expect(() => completion.run([], { env: {}, print() {} })).toThrow(
    "name the shell: bash, zsh, fish",
  );
});
