// Paths and targets of requests: one canonical form, which no server reads as a path that the rules have not checked.
import fc from "fast-check";
import { canonicalPath, comparablePath, stripPrefix } from "../../../src/http/request-target.ts";
import { splitTarget } from "../../support/request-target.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly path: string;
  readonly query: string | null;
  readonly prefix: string;
}

const piece = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.constantFrom(
      "/",
      "a",
      "b",
      "api",
      ".",
      "..",
      "%2e",
      "%2F",
      "%5c",
      ";",
      "%3B",
      "%61",
      "%40",
      "@",
      "%25",
      "%2561",
      "~",
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "%",
      "%00",
      "%zz",
      "\\",
      "#",
      " ",
      "\u00e9",
      "\0",
      "\n",
      "%C3%A9",
      "%252e",
      "%0a",
      "%7f",
      ":",
      "[",
    ),
  },
);
const path = fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join("")}`);

export const target = defineTarget<Input>({
  name: "request-path",
  share: 130,
  inputs: fc.record({
    path,
    query: fc.option(fc.constantFrom("", "a=b", "x=/../y", "?", "a b", "\u00e9", "#", "a=%00")),
    prefix: fc.constantFrom("/", "/a", "/api", "/a/", "/@", "/a/b", "/api/a"),
  }),
  check({ path, query, prefix }) {
    const canonical = canonicalPath(path);
    const split = splitTarget(`http://h${path}${query === null ? "" : `?${query}`}`);
    if (!/[?#]/.test(path) && query === null)
      mustEqual(split?.path ?? null, canonical, "the path of a whole target");
    if (split !== null)
      must(/^\/[\x21\x22\x24-\x7e]*$/.test(split.target), "a target that ends early");
    if (canonical === null) return;
    mustEqual(canonicalPath(canonical), canonical, "the canonical form again");
    const compared = comparablePath(canonical);
    mustEqual(comparablePath(compared), compared, "the comparable form again");
    const readings = SERVERS.map((read) => read(canonical));
    for (const reading of readings)
      must(!/(?:^|\/)\.\.?(?:\/|$)/.test(reading), `a server sees ${reading}`);
    must(readings.includes(compared), `nobody reads ${compared}: ${readings.join(" ")}`);
    checkStripped(canonical, prefix);
  },
});

function checkStripped(path: string, prefix: string): void {
  const rest = stripPrefix(path, prefix);
  const compared = comparablePath(path);
  const bare = comparablePath(prefix).replace(/\/$/, "");
  if (!(compared === bare || compared.startsWith(`${bare}/`))) {
    mustEqual(rest, null, "what is left without the prefix");
    return;
  }
  must(rest === "" || rest?.startsWith("/") === true, `what is left is ${rest}`);
  mustEqual(comparablePath(`${bare}${rest}`), compared, "prefix and rest put together again");
}

const decode = (text: string) =>
  text.replace(/%([2-7][0-9a-f])/gi, (triplet, code: string) => {
    const value = Number.parseInt(code, 16);
    return value === 0x25 || value === 0x7f ? triplet : String.fromCharCode(value);
  });
const turned = (text: string) => text.replaceAll("\\", "/").replace(/\/{2,}/g, "/");
const cut = (text: string) => text.replace(/;[^/]*/g, "");

/** Ways in which servers read a path: parameters cut off before or after escapes are decoded, or kept. */
const SERVERS: readonly ((path: string) => string)[] = [
  (path) => turned(decode(path)),
  (path) => turned(decode(cut(path))),
  (path) => turned(cut(turned(decode(path)))),
  (path) =>
    path
      .split("/")
      .map((part) => decode(part.split(";")[0]!))
      .join("/"),
];
