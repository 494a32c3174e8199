// Decisions of CrowdSec: durations, ends by a clock of the test, and the limit.
import { describe, expect, test } from "bun:test";
import { compileNetworks, NetworkLookup } from "../../../src/net/network-table.ts";
import { finish, Pace } from "../../../src/pace.ts";
import { Decisions, readStream, secondsOf } from "../../../src/plugins/crowdsec/decisions.ts";

test.each([
  ["3h59m49.5s", 14_389.5],
  ["1h0m0s", 3600],
  ["300ms", 0.3],
  ["1.5µs", 1.5e-6],
  ["20us", 2e-5],
  ["7ns", 7e-9],
  ["-2m", -120],
  ["0", 0],
  ["87600h", 315_360_000],
  ["", null],
  ["4", null],
  ["4d", null],
  ["h", null],
  ["1h 5m", null],
  ["1e3s", null],
  [`${"9".repeat(70)}s`, null],
  [14, null],
  [null, null],
])("the duration %p is %p seconds", (duration, seconds) => {
  const read = secondsOf(duration);
  if (seconds === null || read === null) expect(read).toBe(seconds);
  else expect(read).toBeCloseTo(seconds, 9);
});

const decision = (id: number, value: string, duration = "1h", type = "ban") => ({
  id,
  scope: value.includes("/") ? "Range" : "Ip",
  type,
  value,
  duration,
});

const with_ = { pace: new Pace(), max: 100 };

describe("decisions", () => {
  const find = (all: Decisions, address: string, now: () => number) =>
    new NetworkLookup(finish(compileNetworks(all.entries()))).find(address, now);

  test("end by themselves, to the second, and are forgotten with the next response", async () => {
    let now = 1_000_000;
    const all = new Decisions(() => now);
    const added = [decision(1, "192.0.2.0/24", "10s", "captcha"), decision(2, "192.0.2.7", "5s")];
    expect(await all.apply({ added, deleted: [] }, with_)).toBe(true);
    expect(find(all, "192.0.2.7", () => now)).toBe(0);
    now += 5000;
    expect(find(all, "192.0.2.7", () => now)).toBe(1);
    now += 4999;
    expect(find(all, "192.0.2.7", () => now)).toBe(1);
    now += 1;
    expect(find(all, "192.0.2.7", () => now)).toBe(-1);
    expect(await all.apply({ added: [], deleted: [] }, with_)).toBe(true);
    expect([...all.entries()]).toEqual([]);
    expect(await all.apply({ added: [], deleted: [] }, with_)).toBe(false);
  });

  test("up to the limit count; a known one may still be renewed, and a deleted one makes room", async () => {
    const all = new Decisions(() => 0);
    const limit = { ...with_, max: 2 };
    const three = [1, 2, 3].map((id) => decision(id, `10.0.0.${id}`));
    await all.apply({ added: three.slice(0, 2), deleted: [] }, limit);
    expect(all.dropped).toBe(0);
    await all.apply({ added: three, deleted: [] }, limit);
    expect(all.dropped).toBe(1);
    expect([...all.entries()]).toHaveLength(2);
    await all.apply({ added: three.slice(2), deleted: [decision(1, "10.0.0.1")] }, limit);
    expect(all.dropped).toBe(1);
    expect(find(all, "10.0.0.3", () => 0)).toBe(0);
    expect(find(all, "10.0.0.1", () => 0)).toBe(-1);
  });

  test("of any form that JSON allows do no harm", async () => {
    const all = new Decisions(() => 0);
    const odd = [null, 1, "x", [], {}, { value: {} }, { ...decision(1, "1.2.3.4"), scope: null }];
    await all.apply({ added: odd, deleted: odd }, with_);
    expect([...all.entries()]).toEqual([]);
  });

  test("with durations beyond all clocks never end too early", async () => {
    const all = new Decisions(() => 0);
    await all.apply({ added: [decision(1, "1.2.3.4", "99999999999h")], deleted: [] }, with_);
    expect(find(all, "1.2.3.4", () => 4e12)).toBe(0);
  });
});

test.each(["", "null", "[]", "1", "{}", '{"new":[]}', '{"new":{},"deleted":[]}', '{"new":['])(
  "%p is no stream",
  (text) => {
    expect(() => readStream(new TextEncoder().encode(text))).toThrow(/^the response is /);
  },
);
