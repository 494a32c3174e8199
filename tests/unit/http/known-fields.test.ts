// Which header fields of a request are extracted, in any order.
import { expect, test } from "bun:test";
import { HeaderBlock } from "../../../src/http/header-block.ts";
import type { KnownFields } from "../../../src/http/field-name.ts";
import { readKnownFields } from "../../../src/http/known-fields.ts";

const ALL = {
  host: "a.example",
  connection: "close",
  "transfer-encoding": "chunked",
  "content-length": "5",
  upgrade: "websocket",
  cookie: "a=1",
  via: "1.1 other",
  "cdn-loop": "other",
  "user-agent": "curl",
  expect: "100-continue",
  te: "trailers",
};

const NAMED = {
  hostField: "a.example",
  connectionField: "close",
  transferEncoding: "chunked",
  contentLength: "5",
  upgrade: "websocket",
  cookie: "a=1",
  via: "1.1 other",
  cdnLoop: "other",
  userAgent: "curl",
  expect: "100-continue",
  te: "trailers",
};

function knownFields(headers: Readonly<Record<string, string>>): KnownFields {
  const known = readKnownFields(HeaderBlock.of(headers));
  const members = Object.keys(NAMED) as (keyof KnownFields)[];
  return Object.fromEntries(members.map((member) => [member, known[member]])) as never;
}

test("finds all of them, in every order", () => {
  const entries = Object.entries(ALL);
  for (let turn = 0; turn < entries.length; turn++) {
    const turned = [...entries.slice(turn), ...entries.slice(0, turn)];
    expect(knownFields(Object.fromEntries(turned))).toEqual(NAMED);
    expect(knownFields(Object.fromEntries(turned.reverse()))).toEqual(NAMED);
  }
});

test.each(Object.keys(ALL))("finds %s alone, and everything but it", (name) => {
  const others = { ...ALL, [name]: undefined };
  const without = Object.fromEntries(Object.entries(others).filter(([, value]) => value));
  const camel = name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  const member = name === "host" || name === "connection" ? `${name}Field` : camel;
  const one = { [name]: ALL[name as keyof typeof ALL] };
  expect(Object.entries(knownFields(one)).filter(([, value]) => value !== null)).toEqual([
    [member, one[name] as string],
  ]);
  expect(Object.entries(knownFields(without)).filter(([, value]) => value === null)).toEqual([
    [member, null],
  ]);
});

test("an empty value counts, and other names of the same length do not", () => {
  expect(knownFields({ via: "" }).via).toBe("");
  const others = {
    dnt: "1",
    accept: "x",
    date: "x",
    referer: "x",
    "x-a-long": "x",
    "x-user-abc": "x",
  };
  const longer = { "x-content-size": "5", "sec-websocket-key": "x" };
  expect(Object.values(knownFields({ ...others, ...longer })).every((each) => each === null)).toBe(
    true,
  );
});

test("finds nothing in names of Object.prototype, nor without fields", () => {
  const odd = Object.fromEntries([["__proto__", "x"]]);
  expect(Object.values(knownFields(odd)).every((each) => each === null)).toBe(true);
  expect(Object.values(knownFields({})).every((each) => each === null)).toBe(true);
});
