// The second factor on a simulated clock: when a code is valid, and that each is valid once.
import { describe, expect, test } from "bun:test";
import { base32 } from "oslo/encoding";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import type { User } from "../../../src/model/user.ts";
import { recorded } from "../control/fixture.ts";
import { options, userOf, withUsers } from "./fixture.ts";

const root = userOf("root", "admin");
const anna = userOf("anna", "viewer");
const NOW = Date.parse("2026-03-01T12:00:15Z");
const STEP = 30_000;

const codeAt = (secret: string, timeMs: number) => hotp(base32.decode(secret), stepAt(timeMs));

/** The second factors of a control plane, whose decisions are recorded. */
function factorsOf({ changes, secondFactors }: ReturnType<typeof withUsers>["control"]) {
  return {
    begin: (user: User) => recorded(changes, () => secondFactors.begin(user)),
    async confirm(id: string, code: string, now: number) {
      const current = await secondFactors.currentCodes(id, now);
      return recorded(changes, () => secondFactors.confirm(id, code, current));
    },
    async verifySecondFactor(id: string, code: string, now: number) {
      const current = await secondFactors.currentCodes(id, now);
      return recorded(changes, () => secondFactors.verifySecondFactor(id, code, current));
    },
    remove: (id: string) => recorded(changes, () => secondFactors.remove(id)),
    needsSecondFactor: (id: string) => secondFactors.needsSecondFactor(id),
    userIds: () => secondFactors.userIds(),
  };
}

/** A user whose second factor was confirmed at NOW. */
async function confirmed() {
  const { control } = withUsers([root, anna]);
  const factors = factorsOf(control);
  const { secret } = factors.begin(anna);
  const codes = await factors.confirm(anna.id, codeAt(secret, NOW), NOW);
  const verify = (code: string, timeMs: number) =>
    factors.verifySecondFactor(anna.id, code, timeMs);
  return { control, factors, secret, codes, verify };
}

describe("a second factor", () => {
  test("is not required before it is confirmed, and its codes are invalid until then", async () => {
    const { control } = withUsers([root, anna]);
    const factors = factorsOf(control);
    const { secret } = factors.begin(anna);
    expect(factors.needsSecondFactor(anna.id)).toBe(false);
    expect(await factors.verifySecondFactor(anna.id, codeAt(secret, NOW), NOW)).toBe(false);
    await factors.confirm(anna.id, codeAt(secret, NOW), NOW);
    expect(factors.needsSecondFactor(anna.id)).toBe(true);
    expect(factors.needsSecondFactor(root.id)).toBe(false);
    expect(control.users.get(anna.email).view.totp_enabled).toBe(true);
    expect(control.users.get(root.email).view.totp_enabled).toBe(false);
  });

  test("may be started again before it is confirmed: only the last key counts", async () => {
    const { control } = withUsers([root, anna]);
    const factors = factorsOf(control);
    const first = factors.begin(anna).secret;
    const second = factors.begin(anna).secret;
    expect(second).not.toBe(first);
    await expect(factors.confirm(anna.id, codeAt(first, NOW), NOW)).rejects.toThrow(
      "code: is not the current code",
    );
    expect(await factors.confirm(anna.id, codeAt(second, NOW), NOW)).toHaveLength(10);
  });

  test("does not take a code of the key that was replaced while the code was checked", async () => {
    const { control } = withUsers([root, anna]);
    const factors = factorsOf(control);
    const { secret } = factors.begin(anna);
    const current = await control.secondFactors.currentCodes(anna.id, NOW);
    factors.begin(anna);
    expect(() => control.secondFactors.confirm(anna.id, codeAt(secret, NOW), current)).toThrow(
      "code: is not the current code",
    );
  });

  test("that is in use is neither started nor confirmed again", async () => {
    const { factors, secret } = await confirmed();
    const later = NOW + 10 * STEP;
    expect(() => factors.begin(anna)).toThrow("enabled already");
    await expect(factors.confirm(anna.id, codeAt(secret, later), later)).rejects.toThrow("already");
    await expect(factors.confirm(root.id, "123456", later)).rejects.toThrow("no second factor");
  });

  test("is deleted on request and with its user", async () => {
    const { control, factors, secret, verify } = await confirmed();
    expect(factors.remove(root.id)).toBe(false);
    expect(factors.remove(anna.id)).toBe(true);
    expect(factors.needsSecondFactor(anna.id)).toBe(false);
    expect(await verify(codeAt(secret, NOW + STEP), NOW + STEP)).toBe(false);

    const { secret: next } = factors.begin(anna);
    await factors.confirm(anna.id, codeAt(next, NOW), NOW);
    await control.users.remove(anna.id, { ...options, cascade: false });
    expect(factors.needsSecondFactor(anna.id)).toBe(false);
    expect(factors.userIds()).toEqual(new Set());
  });
});

describe("a code", () => {
  test.each([
    { why: "at its time", made: 2 * STEP, used: 2 * STEP, right: true },
    { why: "one step late", made: 2 * STEP, used: 3 * STEP, right: true },
    { why: "one step early", made: 2 * STEP, used: STEP, right: true },
    { why: "two steps late", made: 2 * STEP, used: 4 * STEP, right: false },
    { why: "two steps early", made: 4 * STEP, used: 2 * STEP, right: false },
    { why: "of the step that it was confirmed with", made: 0, used: 0, right: false },
    { why: "of the step before that", made: -STEP, used: 0, right: false },
  ])("$why: $right", async ({ made, used, right }) => {
    const { secret, verify } = await confirmed();
    expect(await verify(codeAt(secret, NOW + made), NOW + used)).toBe(right);
  });

  test("is valid once, and invalidates all before it", async () => {
    const { secret, verify } = await confirmed();
    const [before, code] = [codeAt(secret, NOW + STEP), codeAt(secret, NOW + 2 * STEP)];
    expect(await verify(code, NOW + 2 * STEP)).toBe(true);
    expect(await verify(code, NOW + 2 * STEP)).toBe(false);
    expect(await verify(before, NOW + 2 * STEP)).toBe(false);
    expect(await verify(codeAt(secret, NOW + 3 * STEP), NOW + 3 * STEP)).toBe(true);
  });

  test("may be written with spaces, as apps show it", async () => {
    const { secret, verify } = await confirmed();
    const code = codeAt(secret, NOW + STEP);
    expect(await verify(` ${code.slice(0, 3)} ${code.slice(3)} `, NOW + STEP)).toBe(true);
  });

  test("of another user is wrong", async () => {
    const { factors, secret } = await confirmed();
    const code = codeAt(secret, NOW + STEP);
    expect(await factors.verifySecondFactor(root.id, code, NOW + STEP)).toBe(false);
    expect(await factors.verifySecondFactor("nobody", code, NOW + STEP)).toBe(false);
  });
});

describe("recovery codes", () => {
  test("are ten, all different, and each is valid once", async () => {
    const { codes, verify } = await confirmed();
    expect(new Set(codes).size).toBe(10);
    for (const code of codes) {
      expect(code).toMatch(/^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/);
      expect(await verify(code, NOW)).toBe(true);
      expect(await verify(code, NOW)).toBe(false);
    }
  });

  test("may be written in capitals and without hyphens", async () => {
    const { codes, verify } = await confirmed();
    expect(await verify(codes[0]!.toUpperCase().replaceAll("-", " "), NOW)).toBe(true);
  });

  test.each(["", " ", "-", "aaaa-aaaa-aaaa-aaaa", "x".repeat(100_000)])(
    "%j is invalid",
    async (code) => {
      expect(await (await confirmed()).verify(code, NOW)).toBe(false);
    },
  );

  test("are not stored in readable form, nor is the key", async () => {
    const { control, codes, secret, factors } = await confirmed();
    const stored = JSON.stringify([...factors.userIds(), control.users.list([]).view]);
    for (const text of [...codes, secret]) expect(stored).not.toContain(text);
  });
});
