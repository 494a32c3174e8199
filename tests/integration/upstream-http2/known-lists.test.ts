// Header lists that repeat: a session remembers them by their blocks, and reads each as an encoder with a table meant it.
import { expect, test } from "bun:test";
import type { Field } from "../../support/h2-client.ts";
import { frame } from "../../support/h2-wire.ts";
import { conventional } from "../../../src/http/usual-case.ts";
import { HpackEncoder } from "../../support/hpack-encoder.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { TargetWire } from "./target-wire.ts";

/** Few, so that blocks repeat: some refer to the table, add to it, or change its size. */
const LISTS: readonly (readonly Field[])[] = [
  [["content-type", "application/grpc"]],
  [
    ["content-type", "application/grpc"],
    ["x-a", "1"],
  ],
  [["x-a", "2"]],
  [
    ["x-b", "b".repeat(40)],
    ["x-a", "1"],
  ],
  [["x-b", "c".repeat(40)]],
];

test.each([
  { table: 4096, why: "that holds all of them" },
  { table: 120, why: "that holds one or two" },
  { table: 0, why: "that holds nothing" },
])("3,000 responses with a table $why are read as they were meant", async ({ table }) => {
  const random = new Random(seedOfRun());
  const wire = new TargetWire();
  const encoder = new HpackEncoder();
  if (table < 4096) encoder.resize(table);
  for (let at = 0; at < 3000; at++) {
    const one = wire.request();
    if (at === 0) wire.connect();
    const id = 1 + 2 * at;
    const fields = random.pick(LISTS);
    // For a while in one way, so that whole blocks repeat.
    const as = (["index", "add", "plain"] as const)[Math.floor(at / 60) % 3] ?? "plain";
    if (random.between(0, 200) === 0) encoder.resize(random.between(0, table + 1));
    const all: readonly Field[] = [[":status", "200"], ...fields];
    const block = encoder.encode(
      all.map(([name, value]) => ({ name, value, as, isHuffman: as === "add" })),
    );
    wire.send(frame(1, 5, id, block));
    await one.ended();
    const lines = fields.map(([name, value]) => `${conventional(name)}: ${value}\r\n`).join("");
    expect([one.error, one.head?.lines]).toEqual([null, lines]);
  }
  expect(wire.sessions).toHaveLength(1);
});
