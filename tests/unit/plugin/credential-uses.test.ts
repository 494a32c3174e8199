// Uses of credentials are reported soon, and not repeatedly.
import { expect, test } from "bun:test";
import { CredentialUses } from "../../../src/dataplane/plugin/credential-uses.ts";

test("each is reported once a minute, however often it is used", () => {
  const uses = new CredentialUses(0);
  for (const id of ["a", "b", "a"]) uses.note(id);
  expect(uses.take(1_000)).toEqual(["a", "b"]);
  for (const id of ["a", "c"]) uses.note(id);
  expect(uses.take(2_000)).toEqual(["c"]);
  uses.note("a");
  expect(uses.take(60_000)).toEqual([]);
  for (const id of ["b", "a"]) uses.note(id);
  expect(uses.take(61_000)).toEqual(["b", "a"]);
});

test("a use in the last second of the minute is reported", () => {
  const uses = new CredentialUses(0);
  uses.note("late");
  expect(uses.take(60_500)).toEqual(["late"]);
  expect(uses.take(61_500)).toEqual([]);
});
