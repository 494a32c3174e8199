// Which samples of a soak test count as a leak, on curves of known shape.
import { expect, test } from "bun:test";
import { growthOf, type Sample } from "../soak/samples.ts";

const MB = 1_000_000;
const run = (memoryAt: (at: number) => number): Sample[] =>
  Array.from({ length: 240 }, (_, at) => ({
    seconds: at * 5,
    memory: memoryAt(at),
    shared: 0,
    descriptors: 140,
    maps: 80,
    threads: 10,
  }));

test.each([
  ["nothing changes", () => 100 * MB, false],
  ["all is made in the first half", (at: number) => Math.min(at, 119) * MB, false],
  ["a large body passes now and then", (at: number) => (at % 20 === 0 ? 150 : 100) * MB, false],
  ["memory comes and goes", (at: number) => (100 + 10 * Math.sin(at)) * MB, false],
  ["memory is given back", (at: number) => (300 - at) * MB, false],
  ["a little is kept of each request", (at: number) => (100 + at / 10) * MB, true],
  ["a leak in steps", (at: number) => (100 + 10 * Math.floor(at / 40)) * MB, true],
])("%s", (_, memoryAt, isTooMuch) => {
  const [memory, ...others] = growthOf(run(memoryAt));
  expect(memory).toMatchObject({ figure: "memory", isTooMuch });
  expect(others.map((each) => each.isTooMuch)).toEqual([false, false, false, false]);
});

test("the start and end of a linear curve are reported exactly", () => {
  const [memory] = growthOf(run((at) => (100 + at) * MB));
  expect(memory!.from / MB).toBeCloseTo(220, -1);
  expect(memory!.to / MB).toBeCloseTo(339, -1);
  expect(memory!.share).toBeCloseTo(0.54, 1);
});
