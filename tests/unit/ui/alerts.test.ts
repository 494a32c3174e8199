// The form of an alert without a browser: unchanged values are sent as read, secrets stay, errors appear at their field.
import { describe, expect, test } from "bun:test";
import { formSchemaOf } from "../../../src/model/form-schema.ts";
import { sinks } from "../../../src/observe/alerts/sinks.ts";
import { mergePatch } from "../../../src/ui/api/merge-patch.ts";
import { presetOf, webhookPresets } from "../../../src/ui/pages/alerts/webhook-presets.ts";
import type { JsonSchema } from "../../../src/ui/parts/schema/shape.ts";
import { schemaOfType, schemaOptions } from "../../../src/ui/parts/schema-fields.tsx";

const whole = formSchemaOf("alerts") as JsonSchema;
const types = Object.values(sinks).map(({ type, title, config }) => ({
  type,
  title,
  schema: JSON.parse(JSON.stringify(config)) as JsonSchema,
}));
const optionsFor = (isStored: boolean) =>
  schemaOptions(whole, { isStored, schemaFor: ({ type }) => schemaOfType(whole, types, type) });
const { toValues, toBody, validate, hasField, withoutSecrets } = optionsFor(true);

const stored = {
  id: "1",
  name: "chat",
  type: "webhook",
  events: ["target_down"],
  config: {
    headers: [{ name: "Authorization" }],
    content_type: "application/json",
    template: '{"text": "${title}"}',
    secret: { $secret: "signing" },
  },
};

const patchOf = (config: object) =>
  mergePatch(
    toBody(toValues(stored)),
    toBody(toValues({ ...stored, config: { ...stored.config, ...config } })),
  );

describe("a stored alert", () => {
  test("stays equal without input, although its secrets are not known", () => {
    expect(patchOf({})).toEqual({});
    expect(validate(toValues(stored))).toEqual({});
  });

  test("keeps the write-only URL, and accepts a new one", () => {
    expect(toBody(toValues(stored))["config"]).not.toHaveProperty("url");
    expect(patchOf({ url: "https://example.com/" })).toEqual({
      config: { url: "https://example.com/" },
    });
  });

  test("can lose its signing key and its body", () => {
    expect(patchOf({ secret: null })).toEqual({ config: { secret: null } });
    expect(patchOf({ template: undefined })).toEqual({ config: { template: null } });
  });

  test("is no draft with a secret in it", () => {
    const headers = [{ name: "Authorization", value: "canary" }];
    const values = { ...stored, config: { url: "https://canary.test", headers } };
    expect(JSON.stringify(withoutSecrets?.(values))).not.toContain("canary");
  });

  test.each(["config.url", "config.headers.0.value", "events.0", "threshold.percent", "name"])(
    "shows errors of %s",
    (path) => expect(hasField(path, stored)).toBe(true),
  );
});

test("mail needs a server, a sender and receivers; a webhook needs a URL", () => {
  const errorsOf = (type: string, config: object) => {
    const errors = optionsFor(false).validate({ ...stored, type, config });
    return Object.keys(errors).toSorted();
  };
  expect(errorsOf("smtp", {})).toEqual(["config.from", "config.host", "config.to"]);
  expect(errorsOf("smtp", { host: "h", from: "a@b.example", to: ["a@b.example", "c"] })).toEqual([
    "config.to.1",
  ]);
  expect(errorsOf("webhook", {})).toEqual(["config.url"]);
  expect(errorsOf("webhook", { url: "chat.example.com" })).toEqual(["config.url"]);
});

test.each(webhookPresets.map((preset) => [preset.value, preset] as const))(
  "the body for %s is recognized again, and is valid JSON where required",
  (value, preset) => {
    expect(presetOf(preset)?.value).toBe(value);
    const { template, content_type: type } = preset;
    if (template !== "" && type.endsWith("json"))
      expect(() => JSON.parse(template) as unknown).not.toThrow();
  },
);
