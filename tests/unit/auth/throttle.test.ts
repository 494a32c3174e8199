// When failed sign-in attempts are too many, on a simulated clock.
import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LoginFailureTable } from "../../../src/store/login-failures.ts";
import { openStore } from "../store/fixture.ts";
import { LoginThrottle, MAX_FAILURES, WINDOW_MS } from "../../../src/auth/throttle.ts";
import { ApiError } from "../../../src/model/error.ts";

function scene(maxKeys?: number) {
  const clock = { time: 1_800_000_000_000, now: () => clock.time };
  const throttle = new LoginThrottle(clock, maxKeys);
  /** Null: admitted; else the seconds to wait. */
  const tryOnce = (address: string, account: string): number | null => {
    try {
      throttle.begin(address, account);
      return null;
    } catch (error) {
      expect(error).toBeInstanceOf(ApiError);
      expect((error as ApiError).status).toBe(429);
      return Number((error as ApiError).headers["retry-after"]);
    }
  };
  const fail = (times: number, address: string, account: (index: number) => string) => {
    for (let index = 0; index < times; index++) throttle.begin(address, account(index));
  };
  return { clock, throttle, tryOnce, fail };
}

describe("after ten failures within five minutes", () => {
  test("from one address, whatever the accounts, the eleventh attempt is rejected", () => {
    const { tryOnce, fail } = scene();
    fail(MAX_FAILURES, "10.0.0.1", (index) => `user${index}`);
    expect(tryOnce("10.0.0.1", "another")).toBe(WINDOW_MS / 1000);
    expect(tryOnce("10.0.0.2", "another")).toBeNull();
  });

  test("for one account, whatever the addresses, the eleventh attempt is rejected", () => {
    const { throttle, tryOnce } = scene();
    for (let index = 0; index < MAX_FAILURES; index++)
      throttle.begin(`10.0.1.${index}`, index % 2 === 0 ? "Root@A.example" : " root@a.example");
    expect(tryOnce("10.0.9.9", "root@a.example")).toBe(300);
    expect(tryOnce("10.0.9.9", "other@a.example")).toBeNull();
  });

  test("accounts are compared as users are: by everything but the case of A to Z", () => {
    const { throttle, tryOnce } = scene();
    for (let index = 0; index < MAX_FAILURES; index++)
      throttle.begin(`10.0.1.${index}`, "kate@a.example");
    expect(tryOnce("10.0.9.9", "KATE@a.example")).toBe(300);
    expect(tryOnce("10.0.9.9", "\u212aate@a.example")).toBeNull();
  });

  test("the wait lasts until the oldest is five minutes old, in whole seconds", () => {
    const { clock, tryOnce, fail } = scene();
    fail(1, "a", () => "x");
    clock.time += 100_000;
    fail(9, "a", () => "x");
    clock.time += 500;
    expect(tryOnce("a", "y")).toBe(200);
    clock.time += 199_499;
    expect(tryOnce("a", "y")).toBe(1);
    clock.time += 1;
    expect(tryOnce("a", "y")).toBeNull();
    expect(tryOnce("a", "y")).toBe(100);
  });

  test("rejected attempts are not counted, so that the wait ends", () => {
    const { clock, tryOnce, fail } = scene();
    fail(MAX_FAILURES, "a", () => "x");
    for (let index = 0; index < 100; index++) expect(tryOnce("a", "x")).not.toBeNull();
    clock.time += WINDOW_MS;
    expect(tryOnce("a", "x")).toBeNull();
  });

  test("a clock that is set back locks no account", () => {
    const { clock, tryOnce, fail } = scene();
    fail(MAX_FAILURES, "a", () => "x");
    clock.time -= 3_600_000;
    expect(tryOnce("a", "x")).toBeNull();
  });
});

describe("an attempt", () => {
  test("counts from its start, so that parallel attempts do not bypass the limit", () => {
    const { tryOnce, fail } = scene();
    fail(MAX_FAILURES, "a", () => "x");
    expect(tryOnce("a", "x")).toBe(300);
  });

  test("that is withdrawn no longer counts, and is withdrawn only once", () => {
    const { throttle, tryOnce, fail } = scene();
    fail(8, "a", () => "x");
    const attempt = throttle.begin("a", "x");
    attempt.withdraw();
    attempt.withdraw();
    expect(tryOnce("a", "x")).toBeNull();
    expect(tryOnce("a", "x")).toBeNull();
    expect(tryOnce("a", "x")).toBe(300);
  });

  test("that succeeds does not withdraw failures of others", () => {
    const { throttle, tryOnce, fail } = scene();
    fail(9, "a", () => "x");
    throttle.begin("a", "x").withdraw();
    expect(tryOnce("a", "x")).toBeNull();
    expect(tryOnce("a", "x")).toBe(300);
  });
});

describe("addresses", () => {
  test.each([
    { why: "one network of IPv6", a: "2001:db8:1:2::1", b: "2001:db8:1:2:ffff::9", same: true },
    { why: "two networks of IPv6", a: "2001:db8:1:2::1", b: "2001:db8:1:3::1", same: false },
    { why: "two addresses of IPv4", a: "192.0.2.1", b: "192.0.2.2", same: false },
    { why: "IPv4 seen through IPv6", a: "::ffff:192.0.2.1", b: "::ffff:192.0.2.2", same: false },
    { why: "the machine itself", a: "::1", b: "2001:db8::1", same: false },
  ])("$why", ({ a, b, same }) => {
    const { tryOnce, fail } = scene();
    fail(MAX_FAILURES, a, (index) => `user${index}`);
    expect(tryOnce(b, "another") !== null).toBe(same);
  });
});

test("memory is bounded: what failed longest ago is forgotten first", () => {
  const { throttle, tryOnce } = scene(100);
  for (let index = 0; index < MAX_FAILURES; index++) throttle.begin("192.0.2.1", "root");
  for (let index = 0; index < 10_000; index++)
    throttle.begin(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, `user${index}`);
  expect(throttle.size).toBe(100);
  expect(tryOnce("192.0.2.1", "root")).toBeNull();
});

describe("after a restart", () => {
  function restartable() {
    const clock = { time: 1_800_000_000_000, now: () => clock.time };
    const directory = mkdtempSync(join(tmpdir(), "sluice-throttle-"));
    const { store } = openStore(directory);
    const table = store.with((context) => new LoginFailureTable(context));
    const start = () => {
      const throttle = new LoginThrottle(clock);
      throttle.observe(table.load(clock.now() - WINDOW_MS));
      throttle.onCounted((failures) => table.add(failures, clock.now() - WINDOW_MS));
      return throttle;
    };
    const rows = () => table.load(0).length;
    return { clock, start, rows, table };
  }
  const attempt = (throttle: LoginThrottle) => throttle.begin("10.0.0.1", "root@a.example");

  test("failures count as before, and no longer", () => {
    const { clock, start } = restartable();
    const before = start();
    for (let index = 0; index < MAX_FAILURES; index++) attempt(before).failed();
    expect(() => attempt(start())).toThrow("too many failed sign-ins");
    clock.time += WINDOW_MS;
    expect(() => attempt(start())).not.toThrow();
  });

  test("withdrawn attempts do not count", () => {
    const { start, rows } = restartable();
    const before = start();
    for (let index = 0; index < MAX_FAILURES; index++) attempt(before).withdraw();
    expect(() => attempt(start())).not.toThrow();
    expect(rows()).toBe(0);
  });

  test("what is older than the window is deleted with the next failure", () => {
    const { clock, start, rows } = restartable();
    attempt(start()).failed();
    expect(rows()).toBe(2);
    clock.time += WINDOW_MS;
    attempt(start()).failed();
    expect(rows()).toBe(2);
  });

  test("the database holds at most 20,000 failures, the last ones", () => {
    const { clock, rows, table } = restartable();
    const failures = Array.from({ length: 20_005 }, (_, index) => ({
      key: `${index}`,
      at: clock.time,
    }));
    table.add(failures, 0);
    expect(rows()).toBe(20_000);
    expect(table.load(0).at(-1)?.key).toBe("20004");
  });
});
