// Sign-ins that have begun: how many are kept, and for how long.
import { expect, test } from "bun:test";
import { PendingSignIns } from "../../../../src/control/auth/sso/pending.ts";

const signIn = (redirect: string) => ({
  nonce: "n",
  codeVerifier: "v",
  redirect,
  redirectUri: "http://127.0.0.1/callback",
  issuer: "https://id.example",
  clientId: "c",
});

test("when there are too many the oldest go, and their number never grows past the limit", () => {
  const pending = new PendingSignIns({ now: () => 0 }, 3);
  for (const state of ["a", "b", "c", "d", "e"]) pending.add(state, "browser", signIn(`/${state}`));
  expect(pending.size).toBe(3);
  expect(pending.take("a", "browser")).toBeNull();
  expect(pending.take("b", "browser")).toBeNull();
  for (const state of ["c", "d", "e"])
    expect(pending.take(state, "browser")?.redirect).toBe(`/${state}`);
  expect(pending.size).toBe(0);
});

test("those that have expired make room before any other goes", () => {
  let now = 0;
  const pending = new PendingSignIns({ now: () => now }, 3);
  pending.add("old", "browser", signIn("/"));
  now = 300_000;
  pending.add("a", "browser", signIn("/a"));
  pending.add("b", "browser", signIn("/b"));
  now = 600_000;
  pending.add("c", "browser", signIn("/c"));
  expect(pending.size).toBe(3);
  expect(pending.take("old", "browser")).toBeNull();
  for (const state of ["a", "b", "c"]) expect(pending.take(state, "browser")).not.toBeNull();
});

test("one is spent whoever shows its state", () => {
  const pending = new PendingSignIns({ now: () => 0 });
  pending.add("a", "browser", signIn("/"));
  expect(pending.take("a", "other")).toBeNull();
  expect(pending.take("a", "browser")).toBeNull();
});
