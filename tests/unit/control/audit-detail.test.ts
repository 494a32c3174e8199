// Details of an audit entry: what changed, never a secret, and of limited size.
import { describe, expect, test } from "bun:test";
import { bounded, detailOf, masked } from "../../../src/control/audit-detail.ts";

const user = {
  email: "a@example.com",
  role: "viewer",
  password_hash: "$argon2id$canary-old",
  tags: ["x"],
  updated_at: "1",
};

describe("secrets", () => {
  const cases = [
    { why: "a hash", value: { password_hash: "canary" }, shown: { password_hash: "***" } },
    { why: "the hash of a token", value: { token_hash: "canary" }, shown: { token_hash: "***" } },
    { why: "a sealed value", value: { sealed_value: "canary" }, shown: { sealed_value: "***" } },
    {
      why: "a client secret, however deep it stands",
      value: { a: [{ client_secret: { sealed: "canary" } }] },
      shown: { a: [{ client_secret: "***" }] },
    },
    {
      why: "a sealed text under any name",
      value: { header: "Basic sealed:1:0123abcd:canary" },
      shown: { header: "***" },
    },
  ];
  test.each(cases)("hide $why", ({ value, shown }) => {
    expect(masked(value)).toEqual(shown);
    expect(JSON.stringify(detailOf(null, value))).not.toContain("canary");
    expect(JSON.stringify(detailOf(value, null))).not.toContain("canary");
  });

  test("are not masked when they are null or only name a stored secret", () => {
    const value = { password_hash: null, client_secret: { $secret: "oidc" } };
    expect(masked(value)).toEqual(value);
  });

  test("have another mask when they changed", () => {
    const changed = { ...user, password_hash: "$argon2id$canary-new" };
    expect(detailOf(user, changed)).toEqual({
      before: { password_hash: "***" },
      after: { password_hash: "*** (changed)" },
      diff: [{ path: "password_hash", before: "***", after: "*** (changed)" }],
    });
    expect(detailOf(user, { ...user, role: "admin" })).toEqual({
      before: { role: "viewer" },
      after: { role: "admin" },
      diff: [{ path: "role", before: "viewer", after: "admin" }],
    });
  });
});

describe("an update", () => {
  test("shows the changed fields and what differs inside them, without timestamps", () => {
    const old = {
      name: "web",
      health: { active: { path: "/", port: 1 } },
      tags: [1],
      updated_at: "1",
    };
    const now = {
      name: "web",
      health: { active: { path: "/x", port: 1 } },
      tags: [],
      updated_at: "2",
    };
    expect(detailOf(old, now)).toEqual({
      before: { health: old.health, tags: [1] },
      after: { health: now.health, tags: [] },
      diff: [
        { path: "health.active.path", before: "/", after: "/x" },
        { path: "tags", before: [1], after: [] },
      ],
    });
  });

  test("of an object that was created or deleted", () => {
    expect(detailOf({ a: 1 }, { b: 2 })).toMatchObject({
      diff: [
        { path: "a", before: 1, after: null },
        { path: "b", before: null, after: 2 },
      ],
    });
  });
});

describe("a detail that is too long", () => {
  const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

  test("is truncated: one text", () => {
    const detail = detailOf(null, { html: "x".repeat(262_144) }) as { after: { html: string } };
    expect(detail.after.html).toEndWith("… (262144 characters)");
    expect(sizeOf(detail)).toBeLessThan(2048);
  });

  test("is truncated even if the difference lies behind the cut", () => {
    const [old, now] = ["a", "b"].map((end) => ({ html: "x".repeat(5000) + end }));
    expect(detailOf(old!, now!)).toMatchObject({ diff: [{ path: "html" }] });
  });

  test("is removed, the largest entry has 64 KiB and says so", () => {
    const many = (word: string) =>
      Array.from({ length: 1000 }, (_, i) => word + "é".repeat(100) + i);
    const detail = detailOf({ hosts: many("a"), name: "x" }, { hosts: many("b"), name: "y" });
    expect(sizeOf(detail)).toBeLessThanOrEqual(65_536);
    expect(detail).toMatchObject({ truncated: expect.any(String) });
    expect(sizeOf(bounded(many("a")))).toBeLessThan(100);
  });

  test("retains the difference when only the whole is too long", () => {
    const big = { list: Array.from({ length: 2000 }, (_, i) => `entry number ${i} of the list`) };
    const detail = detailOf({ box: { ...big, n: 1 } }, { box: { ...big, n: 2 } });
    expect(detail).toMatchObject({
      truncated: expect.any(String),
      diff: [{ path: "box.n", before: 1, after: 2 }],
    });
  });
});
