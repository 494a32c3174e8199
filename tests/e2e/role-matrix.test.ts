// The role matrix, which `make test` checks from source, against the executable: a bundler can drop an authorization check.
import { lackOf, needs, testExecutable } from "../support/needs.ts";

testExecutable();

if (lackOf("executable") === null) await import("../integration/security/role-matrix.test.ts");
else needs("executable").test("the executable enforces the role matrix", () => {});
