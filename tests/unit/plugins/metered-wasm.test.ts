// Metered WebAssembly: it computes the same as before, and stops when its counter reaches the limit.
import { expect, test } from "bun:test";
import wasmPath from "@jitl/quickjs-wasmfile-release-sync/wasm" with { type: "file" };
import { COUNTER, metered } from "../../../src/plugins/script/metered-wasm.ts";

const MOST = 2 ** 31 - 1;

/** A section with its length; all are short. */
const section = (id: number, ...body: number[]) => [id, body.length, ...body];
const code = (...instructions: number[]) => [instructions.length + 2, 0, ...instructions, 0x0b];

/** Exports `f`, which has the instructions, takes an i32 and returns none, a memory of one page and a global of its own. */
const moduleOf = (...instructions: number[]) =>
  Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, 1, 0x60, 1, 0x7f, 0),
    ...section(3, 1, 0),
    ...section(5, 1, 0, 1),
    ...section(6, 1, 0x7f, 1, 0x41, 0, 0x0b),
    ...section(7, 1, 1, 0x66, 0, 0),
    ...section(10, 1, ...code(...instructions)),
  ]);

/** Counts its argument down to 0. */
const countDown = [...[0x03, 0x40], ...[0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0], 0x0b];
/** Fills, or copies, as many bytes from the beginning of the memory on. */
const fill = [0x41, 0, 0x41, 0, 0x20, 0, 0xfc, 11, 0];
const copy = [0x41, 0, 0x41, 0, 0x20, 0, 0xfc, 10, 0, 0];

async function load(...instructions: number[]) {
  const { instance } = await WebAssembly.instantiate(metered(moduleOf(...instructions)));
  const exports = instance.exports as Record<string, unknown>;
  return {
    run: exports["f"] as (count: number) => void,
    counter: exports[COUNTER] as WebAssembly.Global<"i32">,
  };
}

test.each([
  ["a loop", countDown, 1000, 1001],
  ["a fill", fill, 3200, 101],
  ["a copy", copy, 65_536, 2049],
  ["nothing but the call", [], 0, 1],
])("%s costs what it executes", async (_, instructions, count, cost) => {
  const { run, counter } = await load(...instructions);
  expect(counter.value).toBe(MOST);
  run(count);
  expect(counter.value).toBe(MOST - cost);
  counter.value = cost;
  run(count);
  expect(counter.value).toBe(0);
  counter.value = cost - 1;
  expect(() => run(count)).toThrow(WebAssembly.RuntimeError);
  expect(counter.value).toBeLessThanOrEqual(0);
});

test("unknown instructions are rejected", () => {
  const simd = [0xfd, 12, ...Array<number>(16).fill(0), 0x1a];
  expect(() => metered(moduleOf(...simd))).toThrow("the opcode fd");
  expect(() => metered(moduleOf(0xfc, 99))).toThrow("the opcode fc 99");
});

test("the engine of scripts is valid afterwards, and everything it exports is still there", async () => {
  const wasm = await Bun.file(wasmPath).bytes();
  const [before, after] = await Promise.all(
    [wasm, metered(wasm)].map((bytes) => WebAssembly.compile(bytes)),
  );
  const names = (module: WebAssembly.Module | undefined) =>
    WebAssembly.Module.exports(module!).map(({ name }) => name);
  expect(names(after)).toEqual([...names(before), COUNTER]);
});
