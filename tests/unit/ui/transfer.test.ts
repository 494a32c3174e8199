// How the format of an imported file is recognized, the line of an error, and the difference of two texts.
import { expect, test } from "bun:test";
import {
  lineOf,
  readFile,
  readText,
  sizeInWords,
} from "../../../src/ui/pages/transfer/import-source.ts";
import { passphraseProblem } from "../../../src/ui/pages/transfer/passphrase.ts";
import { diffLines, linesOf, withGaps } from "../../../src/ui/parts/line-diff.ts";

const texts = [
  { text: "format: 1\nservices: []\n", format: "sluice", type: "yaml" },
  { text: '{"format": 1, "routes": []}', format: "sluice", type: "json" },
  { text: "services:\n  - name: web\n", format: "sluice", type: "yaml" },
  { text: '_format_version: "3.0"\nservices: []\n', format: "kong", type: "yaml" },
  { text: '{"_format_version": "3.0", "services": [}', format: "kong", type: "json" },
  { text: '{"apps": {"http": {}}}', format: "caddy", type: "json" },
  { text: "http {\n  server { listen 80; }\n}\n", format: "nginx", type: "yaml" },
  {
    text: "# configuration file /etc/nginx/nginx.conf:\nuser abc;\n",
    format: "nginx",
    type: "yaml",
  },
  { text: "map $a $b { default 1; } server{listen 80;}", format: "nginx", type: "yaml" },
  { text: 'format: 1\n# a server {\ndescription: "server {"\n', format: "sluice", type: "yaml" },
  { text: "_workspace: team\nservices: []\n", format: "kong", type: "yaml" },
  { text: "http:\n  routers:\n    a: { rule: x }\n", format: "traefik", type: "yaml" },
  { text: '[http.routers.a]\n  rule = "x"\n', format: "traefik", type: "json" },
  { text: "services:\n  web:\n    image: nginx\n", format: "compose", type: "yaml" },
  { text: '{"services": {"web": {"image": "nginx"}}}', format: "compose", type: "json" },
  { text: "frontend a\n  bind :80\n  default_backend b\n", format: "haproxy", type: "yaml" },
  { text: "services:\n  - name: web\n    image: x\n", format: "sluice", type: "yaml" },
] as const;
test.each(texts)("$format is recognized in $text", ({ text, ...expected }) => {
  expect(readText(text)).toMatchObject({ ...expected, problem: null, isEncrypted: false });
});

test("an encrypted file is distinguished from one that only contains the word", () => {
  const encrypted = '{"format": 1, "program": "sluice", "encrypted": {"data": ""}}';
  expect(readText(encrypted)).toMatchObject({ format: "sluice", isEncrypted: true });
  const plain = '{"format": 1, "services": [{"name": "encrypted"}]}';
  expect(readText(plain).isEncrypted).toBe(false);
});

const useless = [
  { text: " \n", says: /empty/ },
  { text: "shop.test {\n  reverse_proxy 127.0.0.1:80\n}\n", says: /caddy adapt/ },
  { text: "\u0000\u0001", says: /neither text/ },
];
test.each(useless)(
  "a file that cannot be imported directly gets a reason: $says",
  ({ text, says }) => {
    expect(readText(text)).toMatchObject({ format: null, problem: expect.stringMatching(says) });
  },
);

test("a database is recognized by its first bytes, whatever its name", async () => {
  const file = new File(["SQLite format 3\0 and so on"], "backup.bin");
  expect(await readFile(file)).toMatchObject({ format: "npm", text: null, name: "backup.bin" });
  expect(await readFile(new File(["format: 1\n"], "a.yaml"))).toMatchObject({ format: "sluice" });
});

test("the line is found in every wording of the gateway", () => {
  expect(lineOf("targets[0].port: must be at most 65535 (line 5)")).toBe(5);
  expect(lineOf("the configuration file is not valid YAML at line 12: unexpected token")).toBe(12);
  expect(lineOf("the certificate is not for this name")).toBeNull();
});

test("a passphrase has 12 to 1024 characters that fit in a header", () => {
  expect(passphraseProblem("too short")).toContain("12");
  expect(passphraseProblem("long enough for it")).toBeNull();
  expect(passphraseProblem("schön lang genug")).not.toBeNull();
  expect(passphraseProblem(" with a space before")).not.toBeNull();
  expect(passphraseProblem("x".repeat(1025))).toContain("1024");
});

test("sizes are formatted", () => {
  expect([999, 1500, 33_554_432].map(sizeInWords)).toEqual(["999 bytes", "1.5 kB", "33.6 MB"]);
});

/** `a -b +c` for common, removed and added lines. */
const shown = (before: string, after: string) =>
  diffLines(before.split(""), after.split(""))
    .map(({ kind, text }) => `${{ same: "", removed: "-", added: "+" }[kind]}${text}`)
    .join(" ");

test.each([
  { before: "abc", after: "abc", diff: "a b c" },
  { before: "abc", after: "axc", diff: "a -b +x c" },
  { before: "", after: "ab", diff: "+a +b" },
  { before: "ab", after: "", diff: "-a -b" },
  { before: "abcd", after: "bcde", diff: "-a b c d +e" },
  { before: "aa", after: "a", diff: "a -a" },
])("from '$before' to '$after' is $diff", ({ before, after, diff }) => {
  expect(shown(before, after)).toBe(diff);
});

test("any two texts can be rebuilt from their difference", () => {
  let state = 7;
  const random = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % below;
  };
  for (let round = 0; round < 500; round++) {
    const text = () => Array.from({ length: random(9) }, () => "abc"[random(3)] ?? "");
    const [before, after] = [text(), text()];
    const lines = diffLines(before, after);
    const side = (other: string) =>
      lines.filter(({ kind }) => kind !== other).map(({ text: t }) => t);
    expect([side("added"), side("removed")]).toEqual([before, after]);
  }
});

test("unchanged lines far from a change are collapsed, with their number", () => {
  const many = Array.from({ length: 40 }, (_, index) => String(index));
  const lines = withGaps(diffLines(many, many.with(20, "x")));
  expect(lines.filter(({ kind }) => kind === "gap")).toEqual([
    { kind: "gap", lines: 17 },
    { kind: "gap", lines: 16 },
  ]);
  expect(lines.length).toBe(10);
});

test("values become readable lines", () => {
  expect(linesOf(["a", 1])).toEqual(["a", "1"]);
  expect(linesOf("two\nlines")).toEqual(["two", "lines"]);
  expect(linesOf({ a: 1 })).toEqual(["{", '  "a": 1', "}"]);
  expect(linesOf([])).toEqual(["[]"]);
  expect(linesOf(null)).toEqual([]);
});
