// Secrets of a stored object and the fields that say where each is sent: found by the annotations of the schema, for every object.
import { describe, expect, test } from "bun:test";
import { Type as t } from "@sinclair/typebox";
import { destination, secretUses, stays, storedSecret } from "../../../src/model/destination.ts";
import { nullable } from "../../../src/model/fields.ts";
import { flag, secret } from "../../../src/pdk/fields.ts";

const described = { description: "x" };
const schema = t.Object({
  kind: destination(t.String()),
  limit: t.Integer(),
  sealed_pin: storedSecret("pin", nullable(t.String(), "x")),
  hash: stays("it is only compared", secret(described)),
  tls: t.Object({ verify: destination(flag(true, "x")), key: t.Optional(secret(described)) }),
  ca: t.Optional(destination(t.String())),
  hook: t.Optional(destination(secret(described))),
  proxy: destination(nullable(t.Object({ url: t.String() }), "x")),
  sinks: t.Array(
    t.Object({
      url: destination(t.String()),
      headers: t.Record(t.String(), secret(described)),
    }),
  ),
  peers: t.Array(destination(t.String())),
});

const object = (fields: object = {}) => ({
  kind: "a",
  limit: 1,
  sealed_pin: null,
  hash: { sealed: "sealed:h" },
  proxy: null,
  tls: { verify: true },
  sinks: [],
  peers: ["p"],
  ...fields,
});

/** `secret -> destination fields`, one line for each. */
const lines = (value: unknown) =>
  secretUses(schema, value).map(
    ({ path, sealed, name, destination: fields }) =>
      `${path} ${sealed ?? `$${name}`} -> ${fields.map((field) => `${field.path}=${field.value}`).join(" ")}`,
  );

const ROOT = 'kind="a" tls.verify=true proxy=null peers[0]="p"';
const secretIn = (sealed: string) => ({ sealed });

describe("a secret is sent to all destination fields of its object", () => {
  test.each([
    ["that has none", {}, []],
    [
      "by the name in which clients send it",
      { sealed_pin: "sealed:1" },
      [`pin sealed:1 -> ${ROOT}`],
    ],
    [
      "inside of a group, with the fields around it",
      { tls: { verify: true, key: { $secret: "k" } } },
      ['tls.key $k -> kind="a" tls.verify=true proxy=null peers[0]="p"'],
    ],
    [
      "that is a destination itself",
      { hook: secretIn("sealed:1") },
      [`hook sealed:1 -> ${ROOT} hook={"sealed":"sealed:1"}`],
    ],
    [
      "whose destination field is an object",
      { sealed_pin: "sealed:1", proxy: { url: "u" } },
      ['pin sealed:1 -> kind="a" tls.verify=true proxy={"url":"u"} peers[0]="p"'],
    ],
    [
      "with a field that may be absent and is not",
      { sealed_pin: "sealed:1", ca: "pem" },
      [`pin sealed:1 -> ${ROOT} ca="pem"`],
    ],
    [
      "in an item of a list, but not to those of other items",
      {
        sinks: [
          { url: "u0", headers: { A: secretIn("sealed:0") } },
          { url: "u1", headers: { B: secretIn("sealed:1"), C: { $secret: "c" } } },
        ],
      },
      [
        `sinks[0].headers.A sealed:0 -> kind="a" tls.verify=true proxy=null sinks[0].url="u0" peers[0]="p"`,
        `sinks[1].headers.B sealed:1 -> kind="a" tls.verify=true proxy=null sinks[1].url="u1" peers[0]="p"`,
        `sinks[1].headers.C $c -> kind="a" tls.verify=true proxy=null sinks[1].url="u1" peers[0]="p"`,
      ],
    ],
  ])("%s", (_, fields, expected) => {
    const sorted = (all: readonly string[]) => all.map((line) => line.split(" ").toSorted());
    expect(sorted(lines(object(fields)))).toEqual(sorted(expected));
  });
});

test("the pattern of a secret is the same for all items of a list and all free names", () => {
  const headers = { A: secretIn("sealed:0"), "12": secretIn("sealed:1") };
  const uses = secretUses(schema, object({ sinks: [{ url: "u", headers }] }));
  expect(new Set(uses.map(({ pattern }) => pattern))).toEqual(new Set(["sinks[].headers[]"]));
  expect(uses.map(({ path }) => path).toSorted()).toEqual([
    "sinks[0].headers.12",
    "sinks[0].headers.A",
  ]);
});

test("a value that does not match the schema has no destinations", () => {
  for (const value of [undefined, null, 5, "x", [], { sinks: {} }, { hook: 5 }, { hook: {} }])
    expect(secretUses(schema, value)).toEqual([]);
});
