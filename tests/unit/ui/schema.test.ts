// How parts of schemas become fields, and which errors wrong values show while the user types.
import { describe, expect, test } from "bun:test";
import { problemsOf } from "../../../src/ui/parts/schema/problems.ts";
import {
  descriptionOf,
  hasSecret,
  type JsonSchema,
  meaningsOf,
  shapeOf,
  toLabel,
  toSingular,
  unitOf,
} from "../../../src/ui/parts/schema/shape.ts";
import { withoutSecrets } from "../../../src/ui/parts/schema/without-secrets.ts";
import { plugins } from "../../support/plugins.ts";

const asJson = (schema: unknown) => JSON.parse(JSON.stringify(schema)) as JsonSchema;

test.each(plugins.map((plugin) => [plugin.name, plugin] as const))(
  "the example of %s is valid",
  (_, { config, example }) => {
    expect(problemsOf(asJson(config), asJson(example))).toEqual([]);
  },
);

test.each([
  {
    why: "a text or nothing",
    schema: { anyOf: [{ type: "string" }, { type: "null" }] },
    shape: "text",
  },
  { why: "a secret", schema: { type: "string", "x-kind": "secret" }, shape: "secret" },
  { why: "a long text", schema: { type: "string", maxLength: 65_536 }, shape: "long" },
  { why: "words", schema: { type: "array", items: { type: "string" } }, shape: "words" },
  {
    why: "objects",
    schema: { type: "array", items: { type: "object", properties: { a: { type: "string" } } } },
    shape: "items",
  },
  {
    why: "headers",
    schema: { type: "object", patternProperties: { "^(.*)$": { type: "string" } } },
    shape: "pairs",
  },
  { why: "anything", schema: {}, shape: "json" },
  {
    why: "one word or several",
    schema: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
    shape: "word_or_words",
  },
])("$why is rendered as $shape", ({ schema, shape }) => {
  expect(shapeOf(schema).shape).toBe(shape as never);
});

test("notes for API clients are not part of form descriptions", () => {
  const oidc = asJson(plugins.find(({ name }) => name === "oidc")?.config);
  const description = oidc.properties?.["client_secret"]?.description ?? "";
  expect(description).toContain("Write-only");
  expect(descriptionOf({ description })).toBe("Client secret; a public client has none");
  expect([descriptionOf({}), descriptionOf({ description: "a. b" })]).toEqual(["", "a. b"]);
});

test("names, units and meanings are read from the schema", () => {
  expect(toLabel("jwks_cache_ttl")).toBe("JWKS cache TTL");
  expect(["Policies", "Cookies", "Limits"].map(toSingular)).toEqual(["Policy", "Cookie", "Limit"]);
  expect(unitOf("open_for", { description: "Seconds until it is tried again" })).toBe("s");
  expect(unitOf("max_body_bytes", {})).toBe("B");
  const schema = { enum: ["a", "b"], description: "a: the first; b: the second" };
  expect(meaningsOf(schema)?.get("b")).toBe("the second");
  expect(meaningsOf({ enum: ["a", "c"], description: "a: the first" })).toBeNull();
  const oidc = plugins.find(({ name }) => name === "oidc");
  expect(hasSecret(asJson(oidc?.config))).toBe(true);
});

describe("a wrong value", () => {
  const schema: JsonSchema = {
    type: "object",
    additionalProperties: false,
    required: ["limits", "key"],
    properties: {
      limits: {
        type: "array",
        minItems: 1,
        items: { type: "object", properties: { window: { type: "integer", minimum: 1 } } },
      },
      key: {
        anyOf: [{ type: "string", pattern: "^ip$", errorMessage: "must be ip" }, { type: "null" }],
      },
    },
  };
  test.each([
    {
      value: { limits: [{ window: 0 }], key: null },
      found: [["limits.0.window", "must be at least 1"]],
    },
    { value: { limits: [], key: "ip" }, found: [["limits", "needs at least one"]] },
    { value: { limits: [{}], key: "x" }, found: [["key", "must be ip"]] },
    { value: { limits: [{}] }, found: [["key", "Key is required"]] },
    { value: { limits: [{}], key: 7 }, found: [["key", "must be a text"]] },
    { value: { limits: [{}], key: null, other: 1 }, found: [["other", "is not a known field"]] },
  ])("$value is reported at its field", ({ value, found }) => {
    expect(problemsOf(schema, value).map(({ path, message }) => [path, message])).toEqual(
      found.map((each) => [...each]),
    );
  });
});

describe("a draft of a value", () => {
  const secret = { type: "string", "x-kind": "secret" };
  const schema: JsonSchema = {
    type: "object",
    properties: {
      url: { type: "string" },
      key: { anyOf: [secret, { type: "null" }] },
      headers: { type: "object", patternProperties: { "^(.*)$": secret } },
      keys: { type: "array", items: secret },
      users: {
        type: "array",
        items: { type: "object", properties: { name: { type: "string" }, password: secret } },
      },
      sink: {
        anyOf: [
          { type: "object", properties: { path: { type: "string" } } },
          { type: "object", properties: { token: secret, port: { type: "integer" } } },
        ],
      },
    },
  };
  test("contains everything except its secrets", () => {
    const value = {
      url: "https://a.test",
      key: "canary",
      free: ["x", 1],
      headers: { "X-Token": "canary" },
      keys: ["canary", null, "canary"],
      users: [{ name: "ann", password: "canary" }],
      sink: { token: "canary", port: 5 },
    };
    expect(withoutSecrets(schema, value)).toEqual({
      url: "https://a.test",
      free: ["x", 1],
      headers: { "X-Token": "" },
      keys: [null, null, null],
      users: [{ name: "ann" }],
      sink: { port: 5 },
    });
  });

  test("keeps references to stored secrets, and the removal of one", () => {
    const value = { key: null, users: [{ name: "ann", password: { $secret: "hers" } }] };
    expect(withoutSecrets(schema, value)).toEqual(value);
  });

  test.each(["access-log", "basic-auth", "forward-auth", "key-auth"])(
    "of %s is its example where that has no secret",
    (name) => {
      const { config, example } = plugins.find((each) => each.name === name) ?? {};
      const kept = withoutSecrets(asJson(config), asJson(example));
      if (!hasSecret(asJson(config))) expect(kept).toEqual(example as object);
      else expect(Object.keys(kept as object)).toEqual(Object.keys(example as object));
    },
  );
});
