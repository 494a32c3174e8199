// The settings form without a browser: unchanged values are sent as read, and errors show while typing.
import { expect, test } from "bun:test";
import { decode } from "../../../src/model/decode.ts";
import { settingsInput } from "../../../src/model/settings.ts";
import type { Schemas } from "../../../src/ui/api/resources.ts";
import { rules, toBody, toValues } from "../../../src/ui/pages/settings/settings-values.ts";

const defaults = { ...decode(settingsInput, {}), updated_at: "2026-01-01T00:00:00.000Z" };

test("unchanged settings are sent as read, every field of them", () => {
  const { updated_at: _, ...read } = defaults;
  expect(toBody(toValues(defaults as Schemas["Settings"]))).toEqual(read);
});

test.each([
  ["10.0.0.0/8", true],
  ["192.0.2.7", true],
  ["2001:db8::/32", true],
  ["::1", true],
  ["everybody", false],
  ["10.0.0.0/", false],
])("%s is a valid network: %p", (text, isRight) => {
  expect(rules.trusted_proxies([text]) === null).toBe(isRight);
});

test.each([
  ["", true],
  ["https://gateway.example.com", true],
  ["http://10.0.0.1:9080/", true],
  ["gateway.example.com", false],
  ["https://gateway.example.com/ui", false],
])("%p can be the public address: %p", (text, isRight) => {
  expect(rules.public_url(text) === null).toBe(isRight);
});
