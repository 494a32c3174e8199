// Rows of Vary: which of several stored responses fits a request.
import { hit, miss, type Row, type Section, store } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";

const varies = (names: string) => [FRESH, `Vary: ${names}`];

const never = (name: string, ...vary: readonly string[]): Row => [
  name,
  store([FRESH, ...vary.map((value) => `Vary: ${value}`)], { request: ["Foo: 1", "Baz: 789"] }),
  miss({ request: ["Foo: 1", "Baz: 789"] }),
];

/** The second value selects the response to the first. */
const same = (name: string, first: string, second: string | readonly string[]): Row => [
  name,
  store(varies(first.slice(0, first.indexOf(":"))), { request: first }),
  hit({ request: second }),
];

const differ = (name: string, first: string, second: string | readonly string[]): Row => [
  name,
  store(varies(first.slice(0, first.indexOf(":"))), { request: first }),
  miss({ request: second }),
];

export const vary: readonly Section[] = [
  {
    rule: "RFC 9111 section 4.1, Vary",
    must: [
      differ("another value", "Foo: 1", "Foo: 2"),
      differ("no value now", "Foo: 1", []),
      ["no value before", store(varies("Foo")), miss({ request: "Foo: 1" })],
      differ("an empty value now", "Foo: 1", "Foo:"),
      differ("another case", "Foo: a", "Foo: A"),
      differ("another order", "Foo: 1, 2", "Foo: 2, 1"),
      [
        "Origin, of a response that one origin may read",
        store([FRESH, "Access-Control-Allow-Origin: https://a.test"], {
          request: "Origin: https://a.test",
        }),
        miss({ request: "Origin: https://b.test" }),
      ],
      [
        "one of two names",
        store(varies("Foo, Bar"), { request: ["Foo: 1", "Bar: abc"] }),
        miss({ request: ["Foo: 2", "Bar: abc"] }),
      ],
      ["none of two names", store(varies("Foo, Bar"), { request: ["Foo: 1", "Bar: abc"] }), miss()],
      [
        "one of three names",
        store(varies("Foo, Bar, Baz"), { request: ["Foo: 1", "Bar: abc", "Baz: 789"] }),
        miss({ request: ["Foo: 2", "Bar: abc", "Baz: 789"] }),
      ],
      [
        "one of three names, in another order",
        store(varies("Foo, Bar, Baz"), { request: ["Foo: 1", "Bar: abc", "Baz: 789"] }),
        miss({ request: ["Foo: 1", "Baz: 789", "Bar: abcde"] }),
      ],
      [
        "names on several lines",
        store([FRESH, "Vary: Foo", "Vary: Bar"], { request: ["Foo: 1", "Bar: 1"] }),
        miss({ request: ["Foo: 1", "Bar: 2"] }),
      ],
      never("*", "*"),
      never("*, *", "*, *"),
      never("* on two lines", "*", "*"),
      never("an empty member before *", ", *"),
      never("* on the second line", "", "*"),
      never("* before a name", "*, Foo"),
      never("* after a name", "Foo, *"),
      never("* on a line after a name", "Foo", "*"),
    ],
    better: [
      same("the same value", "Foo: 1", "Foo: 1"),
      [
        "a response that any origin may read",
        store([FRESH, "Access-Control-Allow-Origin: *"], { request: "Origin: https://a.test" }),
        hit({ request: "Origin: https://b.test" }),
      ],
      ["no value before and now", store(varies("Foo")), hit()],
      [
        "names in any case",
        store(varies("fOO"), { request: "Foo: 1" }),
        hit({ request: "foo: 1" }),
      ],
      [
        "two variants at once",
        store(varies("Foo"), { request: "Foo: 1" }),
        miss({ request: "Foo: 2", response: varies("Foo") }),
        hit({ request: "Foo: 1", expect: { body: "body of step 1" } }),
        hit({ request: "Foo: 2", expect: { body: "body of step 2" } }),
      ],
      [
        "headers that Vary does not name",
        store(varies("Foo"), { request: ["Foo: 1", "Other: 2"] }),
        hit({ request: ["Foo: 1", "Other: 3"] }),
      ],
      [
        "two names",
        store(varies("Foo, Bar"), { request: ["Foo: 1", "Bar: abc"] }),
        hit({ request: ["Bar: abc", "Foo: 1"] }),
      ],
      [
        "three names",
        store(varies("Foo, Bar, Baz"), { request: ["Foo: 1", "Bar: abc", "Baz: 789"] }),
        hit({ request: ["Foo: 1", "Bar: abc", "Baz: 789"] }),
      ],
      [
        "three names, one of them without a value",
        store(varies("Foo, Bar, Baz"), { request: ["Foo: 1", "Baz: 789"] }),
        hit({ request: ["Foo: 1", "Baz: 789"] }),
      ],
      [
        "variants with different names: the newest that fits",
        store(varies("Foo"), { request: ["Foo: 1", "Bar: 1"] }),
        miss({ request: ["Foo: 2", "Bar: 2"], response: varies("Bar") }),
        hit({ request: ["Foo: 1", "Bar: 2"], expect: { body: "body of step 2" } }),
        hit({ request: ["Foo: 1", "Bar: 3"], expect: { body: "body of step 1" } }),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 4.1, normalized values",
    must: [
      differ("another coding", "Accept-Encoding: gzip", "Accept-Encoding: br"),
      differ("a coding that is refused now", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0"),
      differ(
        "no coding at all is refused now",
        "Accept-Encoding: gzip",
        "Accept-Encoding: gzip, identity;q=0",
      ),
      differ("all others are refused now", "Accept-Encoding: gzip", "Accept-Encoding: gzip, *;q=0"),
      differ("a coding of all is refused now", "Accept-Encoding: *", "Accept-Encoding: *, br;q=0"),
      differ("another weight", "Accept: a/a;q=0.5, b/b", "Accept: a/a, b/b;q=0.5"),
      differ("another parameter of a type", "Accept: a/a;v=1", "Accept: a/a;v=2"),
      differ("a parameter of a type", "Accept: a/a", "Accept: a/a;v=2"),
      differ("a language that is refused now", "Accept-Language: en", "Accept-Language: en;q=0"),
      differ("spaces within quotes", 'Foo: "a, b"', 'Foo: "a,b"'),
      differ("spaces in a cookie", "Cookie: a=1, 2", "Cookie: a=1,2"),
      differ("spaces in a product", "User-Agent: a (b, c)", "User-Agent: a (b,c)"),
      differ("another language", "Accept-Language: en", "Accept-Language: de"),
    ],
    better: [
      same("codings in another order", "Accept-Encoding: gzip, br", "Accept-Encoding: br, gzip"),
      same("a coding that is refused", "Accept-Encoding: gzip", "Accept-Encoding: gzip, br;q=0"),
      same(
        "codings with spaces and case",
        "Accept-Encoding: gzip,br",
        "Accept-Encoding:  GZip ,  br",
      ),
      same("a weight of 1", "Accept: a/a;q=1, b/b;q=0.50", "Accept: A/a , b/b; q=0.5"),
      same("types in another order", "Accept: a/a, b/b", "Accept: b/b,, a/a"),
      same("lines are combined", "Foo: 1, 2", ["Foo: 1", "Foo: 2"]),
      same("spaces in lists", "Foo: 1,2", "Foo:  1, 2 "),
      same("languages in another order", "Accept-Language: en, de", "Accept-Language: de, en"),
      same("languages in another case", "Accept-Language: en, de", "Accept-Language: eN, De"),
      same("languages with spaces", "Accept-Language: en, de", "Accept-Language:  en ,   de"),
    ],
  },
];
