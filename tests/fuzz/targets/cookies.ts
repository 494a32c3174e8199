// Cookie headers of any shape, read as a plain loop over the pairs would, and without the cookies of the management API.
import fc from "fast-check";
import { cookieValue, cookieValues } from "../../../src/http/cookie.ts";
import { ManagementCookies } from "../../../src/http/management-cookies.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

const cookies = new ManagementCookies("-0badcafe", (value) => value === "live");
const OWN = [
  ...["sluice_session_0badcafe", "__Host-sluice_session_0badcafe"],
  ...["sluice_session_0badcafe_sso", "__Host-sluice_session_0badcafe_sso"],
];
const OTHERS = ["a", "aa", "session", "a.b", "__Host-x", "sluice_session_00000000"];
const name = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...OTHERS) },
  { weight: 1, arbitrary: fc.constantFrom(...OWN, "sluice_session") },
);
const piece = fc.oneof(
  { weight: 3, arbitrary: name },
  {
    weight: 3,
    arbitrary: fc.constantFrom("=", ";", "; ", " ", "\t", '"', '""', ",", "%3B", "live"),
  },
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
    checkWithout(input.header);
  },
});

/** The result has none of the gateway's cookies, and every other pair unchanged. */
function checkWithout(header: string): void {
  const left = cookies.without(header);
  for (const own of OWN) mustEqual(cookieValues(left, own), [], `values of ${own}`);
  const former = cookieValues(header, "sluice_session").filter((value) => value !== "live");
  mustEqual(cookieValues(left, "sluice_session"), former, "values of the former name");
  for (const other of OTHERS)
    mustEqual(cookieValues(left, other), cookieValues(header, other), `values of ${other}`);
  if (left !== null) mustEqual(cookies.without(left), left, "a second time");
  must(
    cookies.sessionsIn(left).every(({ name: former }) => former === "sluice_session"),
    "a session is left",
  );
}

function plainly({ header, name }: Input): string[] {
  const values: string[] = [];
  for (const pair of header.split(";")) {
    const [, key, value = ""] = /^[ \t]*([^=]*?)[ \t]*=[ \t]*([\s\S]*?)[ \t]*$/.exec(pair) ?? [];
    if (key === name) values.push(/^"[\s\S]*"$/.test(value) ? value.slice(1, -1) : value);
  }
  return values;
}
