// The form of an alert without a browser: unchanged values are sent as read, secrets stay, errors appear at their field.
import { describe, expect, test } from "bun:test";
import { mergePatch } from "../../../src/ui/api/merge-patch.ts";
import type { Read } from "../../../src/ui/api/resources.ts";
import {
  type AlertValues,
  fieldOf,
  rules,
  toBody,
  toValues,
} from "../../../src/ui/pages/alerts/alert-values.ts";
import { presetOf, webhookPresets } from "../../../src/ui/pages/alerts/webhook-presets.ts";

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
} as unknown as Read<"alerts">;

const patchOf = (edit: (values: AlertValues) => AlertValues) =>
  mergePatch(toBody(toValues(stored)), toBody(edit(toValues(stored))));

describe("a stored alert", () => {
  test("stays equal without input", () => {
    expect(patchOf((values) => values)).toEqual({});
  });

  test("keeps the write-only URL, and accepts a new one", () => {
    expect(toBody(toValues(stored)).config).not.toHaveProperty("url");
    const secrets = { ...toValues(stored).secrets, url: "https://example.com/" };
    expect(patchOf((values) => ({ ...values, secrets }))).toEqual({
      config: { url: "https://example.com/" },
    });
  });

  test("shows the name of its referenced secret, and can remove the reference", () => {
    expect(toValues(stored).secrets.signing).toBe("$secret:signing");
    expect(patchOf((values) => ({ ...values, is_unsigned: true }))).toEqual({
      config: { secret: null },
    });
  });

  test("whose body becomes the default loses its own", () => {
    const webhook = { content_type: "application/json", template: "" };
    expect(patchOf((values) => ({ ...values, webhook }))).toEqual({ config: { template: null } });
  });
});

test.each([
  ["config.url", "secrets.url"],
  ["config.secret", "secrets.signing"],
  ["config.headers[0].value", "secrets.headers[0].value"],
  ["config.to[1]", "smtp.to"],
  ["config.template", "webhook.template"],
  ["events[0]", "events"],
  ["service_ids[2]", "service_ids"],
  ["threshold.percent", "threshold.percent"],
  ["name", "name"],
])("an error of %s belongs to %s", (field, place) => {
  expect(fieldOf(field)).toBe(place);
});

test("mail settings without a user lose the password", () => {
  const config = { host: "mail.example", username: "me", from: "a@b.example", to: ["c@d.example"] };
  const kept = toValues({ id: "1", type: "smtp", config } as unknown as Read<"alerts">);
  const { config: changed } = mergePatch(
    toBody(kept),
    toBody({ ...kept, smtp: { ...kept.smtp, username: "" } }),
  );
  expect(changed).toEqual({ username: null, password: null });
  // A new one never had any.
  expect(toBody({ ...toValues({}), type: "smtp" }).config).not.toHaveProperty("password");
});

test("mail needs a server, a sender and receivers; a webhook needs none of them", () => {
  const mail = { ...toValues({}), type: "smtp" } as AlertValues;
  expect(rules.smtp.host("", mail)).not.toBeNull();
  expect(rules.smtp.from("nobody", mail)).not.toBeNull();
  expect(rules.smtp.to([], mail)).not.toBeNull();
  expect(rules.smtp.to(["a@b.example", "c"], mail)).toContain("c is not a mail address");
  expect(rules.smtp.to(["a@b.example"], mail)).toBeNull();
  expect(rules.smtp.host("", toValues({}))).toBeNull();
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
