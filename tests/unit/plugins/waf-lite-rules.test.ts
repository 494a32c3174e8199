// The rules of waf-lite themselves: each has a description and detects its attack.
import { expect, test } from "bun:test";
import { hasSequence } from "../../../src/plugins/waf-lite/exploit-rules.ts";
import { rules, rulesetNames } from "../../../src/plugins/waf-lite/rules.ts";
import { viewsOf } from "../../../src/plugins/waf-lite/views.ts";

test("every rule has an id of its own, a set, parts and a short description", () => {
  expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length);
  for (const { id, ruleset, parts, finds, patterns, sequences = [] } of rules) {
    expect(id).toMatch(/^[a-z]+(?:-[a-z]+)*$/);
    expect(rulesetNames).toContain(ruleset);
    expect(parts.length).toBeGreaterThan(0);
    expect(patterns.length + sequences.length).toBeGreaterThan(0);
    expect(finds).toMatch(/^[a-zA-Z].{8,}[^.]$/);
  }
});

test.each([
  { text: "plain", encoding: "text", views: ["plain"], why: "nothing hides" },
  { text: "%41+b", encoding: "form", views: ["a b"], why: "a plus is a space in a form" },
  { text: "a+b", encoding: "text", views: ["a+b"], why: "and is none in a path" },
  { text: "%2527", encoding: "text", views: ["%27", "'"], why: "two layers" },
  {
    text: "%25252527",
    encoding: "text",
    views: ["%252527", "%2527", "%27"],
    why: "three layers are taken off and no more",
  },
  { text: "%c0%ae%c0%af", encoding: "text", views: ["./"], why: "overlong UTF-8" },
  { text: "%u0027", encoding: "form", views: ["'"], why: "what IIS decodes" },
  { text: "a%zz%", encoding: "form", views: ["a%zz%"], why: "no escape" },
  { text: "a%0a%09b\u00a0c", encoding: "form", views: ["a b c"], why: "white space" },
  { text: "a%00b", encoding: "form", views: ["ab"], why: "zero bytes" },
  { text: "＜ＳＣＲＩＰＴ＞", encoding: "text", views: ["<script>"], why: "wide letters" },
  { text: "a/**/b", encoding: "form", views: ["a/**/b", "a b"], why: "comments" },
  {
    text: "a/*!50000b*/c",
    encoding: "form",
    views: ["a/*!50000b*/c", "a b c"],
    why: "run by MySQL",
  },
  { text: "a/*b", encoding: "form", views: ["a/*b", "a "], why: "a comment without an end" },
  { text: '"\\u003cA\\n\\/"', encoding: "json", views: ['"<a /"'], why: "JSON escapes" },
] as const)("$text reads as $views: $why", ({ text, encoding, views }) => {
  expect(viewsOf(text, encoding)).toEqual([...views]);
});

test.each([
  { text: "a=union+all+select", finds: true, why: "in order" },
  { text: "a=select+all+union", finds: false, why: "in another order" },
  { text: "unionallselec", finds: false, why: "not whole" },
  { text: "unallionall", finds: false, why: "the first step is missing" },
])("a sequence in $text: $why", ({ text, finds }) => {
  expect(hasSequence(text, [["union"], ["all"], ["select"]])).toBe(finds);
});

test("malformed text never throws and is processed fast", () => {
  const pieces = [
    "%",
    "/*",
    "*/",
    "%u",
    "\\u",
    "'",
    '"',
    "<",
    "a",
    " ",
    "\0",
    "é",
    "${",
    "%c0%ae",
    "\ud800",
  ];
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let round = 0; round < 2000; round++) {
    let text = "";
    for (let at = next(40); at >= 0; at--) text += pieces[next(pieces.length)];
    for (const encoding of ["text", "form", "json"] as const)
      for (const view of viewsOf(text, encoding))
        for (const { patterns } of rules) for (const each of patterns) each.test(view);
  }
  for (const piece of pieces)
    for (const view of viewsOf(piece.repeat(65_536 / piece.length), "form"))
      for (const { patterns } of rules) for (const each of patterns) each.test(view);
});
