// How the pages about users show the API's data: devices, waiting times, and what they write back.
import { describe, expect, test } from "bun:test";
import { formSchemaOf } from "../../../src/model/form-schema.ts";
import { deviceOf } from "../../../src/ui/pages/account/device.ts";
import { ssoErrorText } from "../../../src/ui/pages/sign-in/sso-errors.ts";
import type { JsonSchema } from "../../../src/ui/parts/schema/shape.ts";
import { schemaOptions } from "../../../src/ui/parts/schema-fields.tsx";
import type { Sso } from "../../../src/ui/pages/sso/sso-form.tsx";
import { isExpired } from "../../../src/ui/pages/tokens/expiry.ts";
import { inWords } from "../../../src/ui/shell/countdown.ts";
import { ssoErrors } from "../../../src/auth/sso/failure.ts";

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0",
    "Edge on Windows",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1",
    "Safari on iPhone",
  ],
  [
    "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
    "Chrome on Android",
  ],
  ["curl/8.14.1", "curl"],
  ["", "Unknown program"],
  ["<script>", "Unknown program"],
])("%s is %s", (userAgent, device) => {
  expect(deviceOf(userAgent)).toBe(device);
});

test.each([
  [300, "5 min"],
  [252, "4 min 12 s"],
  [60, "1 min"],
  [7, "7 s"],
  [0, ""],
])("%d seconds are %s", (seconds, words) => {
  expect(inWords(seconds)).toBe(words);
});

test("every result of single sign-on has an explanation, and unknown ones are not shown", () => {
  const unknown = ssoErrorText("no such word");
  for (const code of Object.keys(ssoErrors)) expect(ssoErrorText(code)).not.toBe(unknown);
  expect(ssoErrorText("__proto__")).toBe(unknown);
  expect(ssoErrorText("<b>")).not.toContain("<b>");
});

describe("the settings of single sign-on", () => {
  const schema = formSchemaOf("sso") as JsonSchema;
  const { toValues, toBody, validate, withoutSecrets } = schemaOptions(schema, { isStored: true });
  const stored: Sso = {
    enabled: true,
    issuer: "https://id.example",
    client_id: "sluice",
    token_auth: "basic",
    scopes: ["openid"],
    role_claim: "groups",
    role_map: { ops: "editor" },
    default_role: null,
    allowed_domains: [],
    auto_provision: false,
    button_label: "Go",
    client_secret_set: true,
    updated_at: "2026-11-21T00:00:00Z",
  };

  test("are written as they were read, without the secret", () => {
    const { updated_at: _, client_secret_set: __, ...rest } = stored;
    expect(toBody(toValues(stored))).toEqual(rest);
    expect(validate(toValues(stored))).toEqual({});
  });

  test.each([["s3cret"], [{ $secret: "idp" }], [null]])("%p is sent as the secret", (secret) => {
    const values = { ...toValues(stored), client_secret: secret };
    expect(toBody(values)).toMatchObject({ client_secret: secret });
    expect(validate(values)).toEqual({});
  });

  test("are no draft with a secret in it", () => {
    const draft = withoutSecrets?.({ ...toValues(stored), client_secret: "s3cret" });
    expect(JSON.stringify(draft)).not.toContain("s3cret");
  });

  test("need an issuer and a client before they are enabled", () => {
    const errors = validate(toValues({ enabled: true }));
    expect(Object.keys(errors)).toEqual(["issuer", "client_id"]);
    expect(validate(toValues({ enabled: false }))).toEqual({});
  });
});

test("a token without an expiry never expires", () => {
  expect(isExpired({ expires_at: null })).toBe(false);
  expect(isExpired({ expires_at: "2020-01-01T00:00:00Z" })).toBe(true);
  expect(isExpired({ expires_at: "2999-01-01T00:00:00Z" })).toBe(false);
});
