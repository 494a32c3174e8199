// A small, fixed share of `make fuzz`: its targets work, and earlier findings stay fixed.
import { target as http1Connection } from "../../fuzz/targets/http1-connection.ts";
import { expect, test } from "bun:test";
import { testOf } from "../../fuzz/target.ts";
import { targets } from "../../fuzz/targets.ts";

const SEED = 20_261_121;

test.each(targets.map((target) => [target.name, target] as const))("%s", async (_, target) => {
  // Those that take long have a small share.
  const cases = Math.min(2000, target.share * 10);
  const failure = await target.run({ cases, seed: SEED });
  expect(failure === null ? null : `${failure.error}\n\n${testOf(target, failure)}`).toBeNull();
});

test("an empty read of a connection begins no request", async () => {
  await http1Connection.check({
    requests: [{ target: "/", fields: [], body: "", framing: "none" }],
    changes: [{ at: 0, remove: 0, insert: Uint8Array.from([13, 10]) }],
    cuts: [0],
  } as never);
});
