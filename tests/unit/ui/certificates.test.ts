// How the pages of applications and certificates show names, errors and times, without a browser.
import { describe, expect, test } from "bun:test";
import { dnsProviders as definitions } from "../../../src/acme/dns/index.ts";
import { isPublicName as gatewayRule } from "../../../src/applications/domains.ts";
import { openUrl } from "../../../src/ui/pages/applications/application-state.ts";
import {
  domainProblem,
  isPublicName,
  toBody,
  toValues,
} from "../../../src/ui/pages/applications/application-values.ts";
import { adviceFor } from "../../../src/ui/pages/certificates/certificate-advice.ts";
import * as certificates from "../../../src/ui/pages/certificates/certificate-values.ts";
import type { JsonSchema } from "../../../src/ui/parts/schema/shape.ts";
import { schemaOfType, schemaOptions } from "../../../src/ui/parts/schema-fields.tsx";
import { formSchemaOf } from "../../../src/model/form-schema.ts";
import { inDays } from "../../../src/ui/pages/certificates/validity.tsx";

describe("names", () => {
  const names = [
    ...["shop.example.com", "*.example.com", "NAS.Home.Arpa", "nas", "10.0.0.5", "a.local"],
    ...["test", "x.test", "*.lan", "localhost", "a.b.internal", "internal.example.org"],
  ];
  test.each(names)("%s is public or private as the gateway sees it", (name) => {
    expect(isPublicName(name)).toBe(gatewayRule(name));
  });

  test("have one error each", () => {
    const all = ["a.example.com", "http://b.example.com", "A.example.com", "c d", ""];
    expect(all.map((_, index) => domainProblem(all, index) !== null)).toEqual([
      ...[false, true, true, true],
      false,
    ]);
    expect(domainProblem([""], 0)).toBe("Domain is required");
  });

  test("link to the port that clients reach", () => {
    const listener = (protocol: string, port: number) => ({ protocol, port, enabled: true });
    const listeners = [listener("https", 8443), listener("http", 80)] as never;
    expect(openUrl("a.lan", "auto", listeners)).toBe("https://a.lan:8443");
    expect(openUrl("a.lan", "off", listeners)).toBe("http://a.lan");
    expect(openUrl("*.lan", "auto", listeners)).toBeNull();
  });
});

describe("applications", () => {
  test("that run on one server are written with an address alone", () => {
    const values = { ...toValues({}), name: "a", domains: [" a.lan ", ""], upstream: "http://b" };
    expect(toBody(values)).toMatchObject({ domains: ["a.lan"], upstream: "http://b", targets: [] });
  });

  test("that run on several servers name them and no address", () => {
    const target = { host: "10.0.0.5", port: 80, weight: 100 };
    const read = { upstream: null, targets: [{ ...target, id: "x" }] } as never;
    expect(toValues(read)).toMatchObject({ runs_on: "servers", targets: [target] });
    expect(toBody(toValues(read))).toMatchObject({ upstream: null, targets: [target] });
  });
});

describe("certificates", () => {
  test.each([
    ["the CA could not resolve the name: DNS problem: NXDOMAIN", /A or AAAA/],
    ["a CAA record forbids this CA to issue", /CAA record of the domain/],
    ["the CA could not connect: Timeout during connect", /port 80/],
    ["the CA's rate limit is reached: too many certificates", /staging/],
    ["acme.example:443 refused the connection", /could not reach the CA/],
  ])("%s has advice", (error, advice) => {
    expect(adviceFor(error)).toMatch(advice);
  });

  test("with an unknown error have none", () => {
    expect(adviceFor("the sky fell")).toBeNull();
  });

  test("keep their key when none is entered, and get their names from the upload", () => {
    const values = certificates.toValues({ source: "upload", certificate: "PEM" });
    expect(certificates.toBody({ ...values, name: "a" })).toEqual({
      name: "a",
      source: "upload",
      enabled: true,
      tags: [],
      description: "",
      certificate: "PEM",
    });
  });

  test("show how long they are valid", () => {
    expect([1825, 12.9, 1.5, -1].map(inDays)).toEqual([
      ...["5 years left", "12 days left", "36 h left", "over"],
    ]);
  });
});

describe("DNS providers", () => {
  const whole = formSchemaOf("dns-providers") as JsonSchema;
  const types = Object.values(definitions).map(({ type, title, config }) => ({
    type,
    title,
    schema: JSON.parse(JSON.stringify(config)) as JsonSchema,
  }));
  const options = schemaOptions(whole, {
    isStored: true,
    schemaFor: ({ type }) => schemaOfType(whole, types, type),
  });
  const stored = { name: "cf", type: "cloudflare", config: { ttl: 120 } };

  test("are written without the secrets that they were read without", () => {
    const values = options.toValues(stored);
    expect(options.toBody(values)["config"]).toEqual({ ttl: 120 });
    expect(options.validate(values)).toEqual({});
  });

  test("lose the settings of another type, and keep a reference to a secret", () => {
    const config = { url: "https://a.test", api_token: { $secret: "cf" }, ttl: 120 };
    const values = options.toValues({ ...stored, config });
    expect(options.toBody(values)["config"]).toEqual({ api_token: { $secret: "cf" }, ttl: 120 });
  });

  test("have errors at the field of the setting", () => {
    expect(options.hasField("config.api_token", stored)).toBe(true);
    expect(options.hasField("config.url", stored)).toBe(false);
  });

  test("are no draft with a secret in it", () => {
    const values = { ...stored, config: { api_token: "canary" } };
    expect(JSON.stringify(options.withoutSecrets?.(values))).not.toContain("canary");
  });
});
