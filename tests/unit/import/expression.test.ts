// Expressions of RE2 and PCRE: what means the same here is imported, the rest is rejected.
import { expect, test } from "bun:test";
import { caseless, escaped, portable } from "../../../src/import/expression.ts";

test.each([
  ["^/a/[a-z0-9]+$", "^/a/[a-z0-9]+$", "as it is"],
  ["/a\\.php(?:/|$)", "/a\\.php(?:/|$)", "also where a slash ends it"],
  ["(?i)^/Ad-1", "^/[aA][dD]-1", "a flag for all of it"],
  ["(?i)[a-f_x]", "[a-fA-F_xX]", "a flag for classes"],
  ["a(?i:b)c", "a(?:[bB])c", "a flag for a group"],
  ["(?P<id>\\d+)", "(\\d+)", "names are not needed"],
  ["(?<id>\\d+)", "(\\d+)", "names are not needed"],
  ["\\Aa\\z", "^a$", "ends of the text"],
  ["[]a]", "[\\]a]", "a bracket at the start is a character"],
  ["[^]a]", "[^\\]a]", "also in a negated class"],
  ["[[:alpha:]_]", "[A-Za-z_]", "classes by name"],
  ["a{2,3}?b*?", "a{2,3}?b*?", "quantifiers"],
  ["\\s", "[\\t\\n\\v\\f\\r ]", "white space is less than here"],
  ["[\\w.-]+", "[\\w.\\-]+", "a hyphen at the end"],
])("%s becomes %s (%s)", (source, expected) => {
  const made = portable(source)?.source ?? "";
  expect(made).toBe(expected);
  expect(() => new RegExp(made)).not.toThrow();
});

test.each([
  ["(?=a)b", "looking ahead"],
  ["(?!a)b", "looking ahead"],
  ["(?<=a)b", "looking back"],
  ["(?>a)b", "atomic groups"],
  ["(?s).", "other flags"],
  ["(?m)^a", "other flags"],
  ["(?-i)a", "flags taken back"],
  ["(*LIMIT_MATCH=1)a", "verbs"],
  ["a++", "possessive quantifiers"],
  ["a{2}{3}", "quantifiers of quantifiers"],
  ["(a)\\1", "references"],
  ["\\pL", "classes of Unicode"],
  ["\\x{41}", "codes"],
  ["\\Qa.b\\E", "quotes"],
  ["\\h", "letters that mean something to one of them"],
  ["[[:cntrl:]]", "classes by other names"],
  ["[a", "a class without an end"],
  ["(a", "a group without an end"],
  ["a)", "a group without a beginning"],
  ["ü", "other letters than those of ASCII"],
  ["(?i)[!-~]", "ranges with letters in them, in either case"],
  ["*a", "nothing to repeat"],
])("%s has no counterpart: %s", (source) => {
  expect(portable(source)).toBeNull();
});

test.each([
  ["^/a/\\d+$", true],
  ["^/a/.*$", true],
  ["^/a/[^/]+/x", true],
  ["^/a/.$", false],
  ["^/a/[^/]{3}$", false],
  ["^/a/[^@]+$", false],
  ["^/a/@me", false],
  ["^/a/\\W", false],
  ["^/a/[!-~]", false],
  ["^/a%20b", false],
])("%s ignores whether characters are escaped: %p", (source, isBlind) => {
  expect(portable(source)?.ignoresEscapes).toBe(isBlind);
});

test("texts", () => {
  expect(escaped("/a.b(c)")).toBe("/a\\.b\\(c\\)");
  expect(caseless("/aB1.")).toBe("/[aA][bB]1\\.");
  expect(portable("Ab", true)?.source).toBe("[aA][bB]");
});
