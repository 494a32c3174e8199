// How far a clock is off, from heartbeats with and without delay.
import { expect, test } from "bun:test";
import { ClockOffset } from "../../../src/fleet/clock-offset.ts";
import { createLog } from "../../../src/log.ts";

function offset() {
  const lines: string[] = [];
  const log = createLog({ level: "warn", format: "json", sink: (line) => lines.push(line) });
  return { clock: new ClockOffset(log), lines };
}

test("the offset is measured at the middle of the round trip", () => {
  const { clock } = offset();
  expect(clock.ms).toBeNull();
  clock.measure(1000, 900, 1040);
  expect(clock.ms).toBe(120);
  clock.measure(1000, 1520, 1040);
  expect(clock.ms).toBe(-500);
});

test("an offset beyond a second is logged once, and again after it was small", () => {
  const { clock, lines } = offset();
  for (let beat = 0; beat < 3; beat++) clock.measure(10_000, 8000, 10_010);
  expect(lines.length).toBe(1);
  expect(lines[0]).toContain("NTP");
  clock.measure(10_000, 10_000, 10_010);
  clock.measure(10_000, 12_000, 10_010);
  expect(lines.length).toBe(2);
});

test("a slow response is no reason for a warning", () => {
  const { clock, lines } = offset();
  clock.measure(10_000, 10_000, 14_000);
  expect([clock.ms, lines]).toEqual([2000, []]);
});
