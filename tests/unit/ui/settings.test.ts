// The settings form without a browser: unchanged values are sent as read, and errors show while typing.
import { expect, test } from "bun:test";
import { decode } from "../../../src/model/decode.ts";
import { formSchemaOf } from "../../../src/model/form-schema.ts";
import { settingsInput } from "../../../src/model/settings.ts";
import type { JsonSchema } from "../../../src/ui/parts/schema/shape.ts";
import { schemaOptions } from "../../../src/ui/parts/schema-fields.tsx";

const { toValues, toBody, validate } = schemaOptions(formSchemaOf("settings") as JsonSchema);
const defaults = { ...decode(settingsInput, {}), updated_at: "2026-01-01T00:00:00.000Z" };

test("unchanged settings are sent as read, every field of them", () => {
  const { updated_at: _, ...read } = defaults;
  expect(toBody(toValues(defaults))).toEqual(read);
});

test.each([
  ["10.0.0.0/8", true],
  ["192.0.2.7", true],
  ["2001:db8::/32", true],
  ["::1", true],
  ["everybody", false],
  ["10.0.0.0/", false],
])("%s is a valid network: %p", (text, isRight) => {
  const errors = validate(toValues({ trusted_proxies: [text] }));
  expect(Object.keys(errors)).toEqual(isRight ? [] : ["trusted_proxies.0"]);
});

test.each([
  [null, true],
  ["https://gateway.example.com", true],
  ["http://10.0.0.1:9080/", true],
  ["gateway.example.com", false],
  ["https://gateway.example.com/ui", false],
])("%p can be the public address: %p", (text, isRight) => {
  const errors = validate(toValues({ public_url: text }));
  expect(Object.keys(errors)).toEqual(isRight ? [] : ["public_url"]);
});

test("a redirect needs its address", () => {
  const errors = validate(toValues({ default_site: { action: "redirect" } }));
  expect(errors).toEqual({ "default_site.to": "Redirect to is required" });
});
