// Pending sign-ins: how many are kept, and for how long.
import { expect, test } from "bun:test";
import { PendingSignIns } from "../../../../src/auth/sso/pending.ts";

const signIn = (redirect: string) => ({
  nonce: "n",
  codeVerifier: "v",
  redirect,
  redirectUri: "http://127.0.0.1/callback",
  issuer: "https://id.example",
  clientId: "c",
});

test("the oldest are evicted beyond the limit", () => {
  const pending = new PendingSignIns({ now: () => 0 }, 3);
  for (const state of ["a", "b", "c", "d", "e"]) pending.add(state, "browser", signIn(`/${state}`));
  expect(pending.size).toBe(3);
  expect(pending.take("a", "browser")).toBeNull();
  expect(pending.take("b", "browser")).toBeNull();
  for (const state of ["c", "d", "e"])
    expect(pending.take(state, "browser")?.redirect).toBe(`/${state}`);
  expect(pending.size).toBe(0);
});

test("expired ones are evicted before any other", () => {
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

test("a state is valid once, even when another browser presents it", () => {
  const pending = new PendingSignIns({ now: () => 0 });
  pending.add("a", "browser", signIn("/"));
  expect(pending.take("a", "other")).toBeNull();
  expect(pending.take("a", "browser")).toBeNull();
});
