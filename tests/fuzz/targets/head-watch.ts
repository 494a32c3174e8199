// The acceptor's inspection of request heads: it forwards any bytes in any pieces unchanged, and never delays a whole head.
import fc from "fast-check";
import { HeadWatch } from "../../../src/dataplane/listener/head-watch.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly text: string;
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

export const target = defineTarget<Input>({
  name: "head-watch",
  share: 60,
  inputs: fc.record({
    text: fc
      .tuple(
        fc.constantFrom("GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\n", "POST /x HTTP/1.0\r\n", ""),
        fc.array(fc.constantFrom("Host: a\r\n", "X: \xe4\r\n", "\r\n", "body", "\n", "\r"), {
          maxLength: 6,
        }),
      )
      .map(([line, rest]) => line + rest.join("")),
    changes: edits(2),
    cuts,
  }),
  check({ text, changes, cuts: ends }) {
    const bytes = edited(Buffer.from(text, "latin1"), changes);
    const watch = new HeadWatch(0, 1);
    const passed: Buffer[] = [];
    let sent = 0;
    for (const piece of inPieces(bytes, ends)) {
      sent += piece.length;
      const on = watch.pass(piece, 0);
      if (on !== null) passed.push(on);
      const before = bytes.subarray(0, sent);
      mustEqual(on === null, watch.isHolding, "held back after the first head was let go");
      if (on !== null) mustEqual(Buffer.concat(passed), Buffer.from(before), "what went on");
      must(!watch.isHolding || !before.includes("\r\n\r\n"), "a whole head was held back");
    }
  },
});
