// Cookie headers of any shape, read as a plain loop over the pairs would.
import fc from "fast-check";
import { cookieValue, cookieValues } from "../../../src/http/cookie.ts";
import { defineTarget, mustEqual } from "../target.ts";

const name = fc.constantFrom("a", "aa", "session", "a.b", "__Host-x");
const piece = fc.oneof(
  { weight: 3, arbitrary: name },
  { weight: 3, arbitrary: fc.constantFrom("=", ";", "; ", " ", "\t", '"', '""', ",", "%3B") },
  { weight: 1, arbitrary: fc.string({ maxLength: 4 }) },
);

interface Input {
  readonly header: string;
  readonly name: string;
}

export const target = defineTarget<Input>({
  name: "cookies",
  share: 140,
  inputs: fc.record({
    header: fc.array(piece, { maxLength: 16 }).map((pieces) => pieces.join("")),
    name,
  }),
  check(input) {
    const wanted = plainly(input);
    mustEqual(cookieValue(input.header, input.name), wanted[0] ?? null, "first value");
    mustEqual(cookieValues(input.header, input.name), wanted, "all values");
  },
});

function plainly({ header, name }: Input): string[] {
  const values: string[] = [];
  for (const pair of header.split(";")) {
    const [, key, value = ""] = /^[ \t]*([^=]*?)[ \t]*=[ \t]*([\s\S]*?)[ \t]*$/.exec(pair) ?? [];
    if (key === name) values.push(/^"[\s\S]*"$/.test(value) ? value.slice(1, -1) : value);
  }
  return values;
}
