// Second factors in a real database: across a restart, one for each user, and none without a user.
import { expect, test } from "bun:test";
import { SecondFactors } from "../../../src/auth/totp.ts";
import type { RecordedFacts } from "../../../src/control/change-contract.ts";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { TotpTable } from "../../../src/store/totp.ts";
import { base32 } from "oslo/encoding";
import { userOf, withUsers } from "../auth/fixture.ts";
import { openStore, temporaryDirectory } from "./fixture.ts";

const record = {
  user_id: "a",
  sealed_key: "sealed:1:00000000:AAAA",
  confirmed: false,
  last_step: 0,
  recovery_hashes: [],
};

test("a row is replaced, kept over a restart, and removed", async () => {
  using directory = temporaryDirectory();
  {
    using opened = openStore(directory.path);
    const table = opened.store.with((context) => new TotpTable(context));
    expect(table.get("a")).toBeNull();
    table.put(record);
    table.put({ ...record, user_id: "b" });
    table.put({ ...record, confirmed: true, last_step: 7, recovery_hashes: ["x", "y"] });
  }
  using opened = openStore(directory.path);
  const table = opened.store.with((context) => new TotpTable(context));
  expect(table.get("a")).toEqual({
    ...record,
    confirmed: true,
    last_step: 7,
    recovery_hashes: ["x", "y"],
  });
  expect(table.all()).toHaveLength(2);
  table.remove("a");
  table.remove("nobody");
  expect(table.all().map(({ user_id }) => user_id)).toEqual(["b"]);
});

test("a used code stays used after a restart, and a second factor without a user is deleted", async () => {
  using directory = temporaryDirectory();
  const anna = userOf("anna", "admin");
  const now = Date.parse("2026-03-01T12:00:15Z");
  const box = new SecretBox(new Uint8Array(32));
  const { changes } = withUsers([anna]).control;
  const open = (store: ReturnType<typeof openStore>["store"]) => {
    const table = store.with((context) => new TotpTable(context));
    const factors = new SecondFactors({ store: table, box, changes });
    /** Writes the facts of a decision to this database. */
    const record = <T>({ value, facts }: RecordedFacts<T>): T => {
      store.record(facts);
      return value;
    };
    return { table, factors, record };
  };
  let [code, recovery] = ["", ""];
  {
    using opened = openStore(directory.path);
    const { table, factors, record: take } = open(opened.store);
    const { secret } = take(factors.begin(anna));
    code = hotp(base32.decode(secret), stepAt(now));
    const current = await factors.currentCodes(anna.id, now);
    recovery = take(factors.confirm(anna.id, code, current))[0] ?? "";
    expect(take(factors.verifySecondFactor(anna.id, recovery, current))).toBe(true);
    table.put({ ...record, user_id: "deleted while the process died" });
    const stored = JSON.stringify(table.all());
    expect(stored).not.toContain(secret);
    expect(stored).not.toContain(recovery.replaceAll("-", ""));
  }
  using opened = openStore(directory.path);
  const { table, factors } = open(opened.store);
  expect(table.all().map(({ user_id }) => user_id)).toEqual([anna.id]);
  const current = await factors.currentCodes(anna.id, now);
  expect(factors.verifySecondFactor(anna.id, code, current).value).toBe(false);
  expect(factors.verifySecondFactor(anna.id, recovery, current).value).toBe(false);
});
