// What of a fleet's log is signed with which key when the secret key is replaced.
import { expect, test } from "bun:test";
import { EntryCodec } from "../../../src/fleet/entry.ts";

const content = { changed: null, facts: [], previous: null };
const mark = (position: number) => ({ position, id: `id ${position}` });

test("entries up to the one that brings a key are signed with the former one, and later ones with the new one", () => {
  const [codec, old, fresh] = ["old", "old", "new"].map((key) => new EntryCodec("fleet", key));
  codec!.rotate(5, "new");
  for (const [position, valid, invalid] of [
    [4, old, fresh],
    [5, old, fresh],
    [6, fresh, old],
  ] as const) {
    const entry = codec!.encode(mark(position), "n1", content);
    expect(valid!.decode(entry)).toEqual(content);
    expect(codec!.decode(valid!.encode(mark(position), "n2", content))).toEqual(content);
    expect(() => invalid!.decode(entry)).toThrow("is not signed with the secret key");
    expect(() => codec!.decode(invalid!.encode(mark(position), "n2", content))).toThrow(
      "is not signed with the secret key",
    );
  }
});

test("what nodes store at the position of a new key is signed with it", () => {
  const [codec, old, fresh] = ["old", "old", "new"].map((key) => new EntryCodec("fleet", key));
  codec!.rotate(5, "new");
  const whole = { ...content, kind: "whole" } as const;
  expect(fresh!.decode(codec!.encode(mark(5), "n1", whole))).toEqual(content);
  expect(old!.decode(codec!.encode(mark(4), "n1", whole))).toEqual(content);
  expect(() => old!.decode(codec!.encode(mark(5), "n1", whole))).toThrow("is not signed");
  const row = ["n1", 5];
  expect(codec!.isSignedNode(row, 5, fresh!.signNode(row, 5))).toBe(true);
  expect(codec!.isSignedNode(row, 5, old!.signNode(row, 5))).toBe(false);
  expect(codec!.isSignedNode(row, 4, old!.signNode(row, 4))).toBe(true);
  expect(codec!.isSignedNode(row, 4, fresh!.signNode(row, 4))).toBe(false);
});

test("keys may be replaced again and again", () => {
  const codec = new EntryCodec("fleet", "first");
  codec.rotate(2, "second");
  codec.rotate(4, "third");
  for (const [position, key] of [
    [2, "first"],
    [3, "second"],
    [4, "second"],
    [5, "third"],
  ] as const)
    expect(
      codec.decode(new EntryCodec("fleet", key).encode(mark(position), "n1", content)),
    ).toEqual(content);
});
