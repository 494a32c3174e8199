// The description of every write-only field in every schema says what happens when a write omits it.
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { schemas } from "../../src/api/schemas.ts";
import { dnsProviders } from "../../src/acme/dns/index.ts";
import { sinks } from "../../src/observe/alerts/sinks.ts";
import { plugins } from "../support/plugins.ts";

interface Field {
  readonly path: string;
  readonly schema: TSchema;
}

/** Fields that clients write, a union or a list of them under the path of the field. */
function fieldsOf(path: string, schema: TSchema): Field[] {
  const members = (of: unknown, at: (name: string) => string) =>
    Object.entries((of ?? {}) as Record<string, TSchema>).flatMap(([name, inner]) =>
      fieldsOf(at(name), inner),
    );
  const choices = (schema["anyOf"] ?? []) as TSchema[];
  const items = schema["items"] as TSchema | undefined;
  return [
    { path, schema },
    ...choices.flatMap((choice) => fieldsOf(path, choice)),
    ...(items === undefined ? [] : fieldsOf(`${path}[]`, items)),
    ...members(schema["properties"], (name) => `${path}.${name}`),
    ...members(schema["patternProperties"], () => `${path}.*`),
  ];
}

const written = Object.entries(schemas).filter(([name]) => name.endsWith("Input"));
/** Objects of these are used at a place that the same object names. */
const sent = [
  ...plugins.map(({ name, config }) => [`plugin ${name}`, config] as const),
  ...Object.entries(dnsProviders).map(([name, { config }]) => [`dns ${name}`, config] as const),
  ...Object.entries(sinks).map(([name, { config }]) => [`alert ${name}`, config] as const),
];
const fields = [...written, ...sent].flatMap(([name, schema]) => fieldsOf(name, schema));
const writeOnly = fields.filter(({ schema }) => schema["writeOnly"] === true);

/** Named like a secret, but not secret. */
const harmless = [
  ...["CertificateInput.reuse_key"],
  ...["ConsumerCredentialInput.public_key", "CredentialInput.public_key", "SsoInput.token_auth"],
  ...["SsoInput.client_secret.$secret", "dns ovh.application_key"],
  ...["plugin cors.private_network", "plugin oidc.forward_access_token"],
];

describe("write-only fields", () => {
  test("include every field that is named like a secret", () => {
    const marked = new Set(writeOnly.map(({ path }) => path));
    const unmarked = fields
      .filter(({ schema }) => !["object", "array"].includes(schema["type"]))
      .map(({ path }) => path)
      .filter((path) => /(pass(word|phrase)|secret|token|private|hmac)[^.]*$|_key$/.test(path))
      .filter((path) => !marked.has(path) && !path.endsWith(".cache_key"));
    expect([...new Set(unmarked)].sort()).toEqual([...harmless].sort());
    const expected = ["AcmeAccountInput.eab_hmac_key", "CertificateInput.private_key"];
    expected.push("ConsumerCredentialInput.secret", "CredentialInput.secret", "SecretInput.value");
    expected.push("SsoInput.client_secret", "UserInput.password", "dns cloudflare.api_token");
    expected.push(
      "alert webhook.url",
      "alert webhook.headers[].value",
      "plugin oidc.client_secret",
    );
    for (const path of expected) expect(marked).toContain(path);
  });

  test.each(writeOnly.map(({ path, schema }) => [path, String(schema["description"])]))(
    "%s says that it stays when it is omitted",
    (_, description) => {
      expect(description).toContain("Write-only: a later write without it leaves it unchanged");
    },
  );

  test.each(
    writeOnly
      .filter(({ path }) => sent.some(([name]) => path.startsWith(`${name}.`)))
      .concat(writeOnly.filter(({ path }) => /^(Sso|AcmeAccount)Input\./.test(path)))
      .map(({ path, schema }) => [path, String(schema["description"])]),
  )("%s says that it is not sent to another destination", (_, description) => {
    expect(description).toContain("unless its destination changes");
  });

  test.each(["AlertInput", "DnsProviderInput", "PluginInput"])(
    "%s says the same of the secrets in its config",
    (name) => {
      const found = fields.find(({ path }) => path === `${name}.config`);
      const description = String(found?.schema["description"]);
      expect(description).toContain("write-only");
      expect(description).toContain("leaves them unchanged unless their destination changes");
    },
  );
});
