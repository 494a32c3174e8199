// Decoding: defaults, strictness, and errors that name the field.
import { describe, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { decode } from "../../../src/model/decode.ts";
import { ApiError } from "../../../src/model/error.ts";
import { listenerInput } from "../../../src/model/listener.ts";
import { routeInput } from "../../../src/model/route.ts";
import { tokenInput } from "../../../src/model/token.ts";
import { serviceInput, serviceWithTargetsInput } from "../../../src/model/service.ts";
import { settingsInput } from "../../../src/model/settings.ts";
import { targetInput } from "../../../src/model/target.ts";
import { withoutDefaults } from "../../../src/model/without-defaults.ts";

function messageOf(schema: TSchema, value: unknown): string {
  try {
    decode(schema, value);
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).status).toBe(400);
    return (error as ApiError).message;
  }
  return "accepted";
}

describe("an invalid document is rejected", () => {
  const cases: { why: string; schema: TSchema; value: unknown; message: string }[] = [
    {
      why: "a required field is absent",
      schema: serviceInput,
      value: {},
      message: "name: is required",
    },
    {
      why: "it is no object",
      schema: serviceInput,
      value: [],
      message: "must be an object",
    },
    {
      why: "a field is misspelt: it must not vanish",
      schema: serviceInput,
      value: { name: "a", protcol: "http" },
      message: "protcol: is not a known field",
    },
    {
      why: "a nested field is misspelt",
      schema: serviceInput,
      value: { name: "a", tls: { verfy: false } },
      message: "tls.verfy: is not a known field",
    },
    {
      why: "a word is not one of the list",
      schema: serviceInput,
      value: { name: "a", protocol: "ftp" },
      message:
        'protocol: must be one of "http", "https", "h2", "h2c", "grpc", "grpcs", "tcp", "tls", "udp"',
    },
    {
      why: "a number is out of range, inside a list",
      schema: serviceWithTargetsInput,
      value: {
        name: "a",
        targets: [
          { host: "a", port: 80 },
          { host: "b", port: 65_536 },
        ],
      },
      message: "targets[1].port: must be an integer from 1 to 65535",
    },
    {
      why: "a number is a text: nothing is converted",
      schema: targetInput,
      value: { service_id: "a", host: "a", port: "80" },
      message: "port: must be an integer from 1 to 65535",
    },
    {
      why: "a number has a fraction",
      schema: targetInput,
      value: { service_id: "a", host: "a", port: 80, weight: 1.5 },
      message: "weight: must be an integer from 0 to 65535",
    },
    {
      why: "a name holds a line feed",
      schema: serviceInput,
      value: { name: "a\nb" },
      message: "name: must start and end with a letter",
    },
    {
      why: "a name is empty",
      schema: serviceInput,
      value: { name: "" },
      message: "name: must not be empty",
    },
    {
      why: "a list has too many elements",
      schema: routeInput,
      value: { methods: Array.from({ length: 51 }, (_, index) => `M${index}`) },
      message: "methods: must have at most 50 elements",
    },
    {
      why: "a list that must not be empty is",
      schema: routeInput,
      value: { protocols: [] },
      message: "protocols: must have at least 1 elements",
    },
    {
      why: "an alternative is wrong deep inside",
      schema: routeInput,
      value: { paths: [{ type: "glob", value: "/x" }] },
      message: 'paths[0].type: must be one of "prefix", "exact", "regex"',
    },
    {
      why: "a redirect status is none",
      schema: routeInput,
      value: { https_redirect: 302 },
      message: "https_redirect: must be true or false or 301 or 308",
    },
    {
      why: "a URL has a path",
      schema: settingsInput,
      value: { public_url: "https://a.example/x" },
      message: "public_url: must be http:// or https:// and a host, without a path",
    },
    {
      why: "a listener has no port",
      schema: listenerInput,
      value: { name: "a" },
      message: "port: is required",
    },
  ];
  test.each(cases)("$why", ({ schema, value, message }) => {
    expect(messageOf(schema, value)).toStartWith(message);
  });
});

test.each([[{}], [{ a: "x" }], [{ constructor: 1 }], [{ length: 0 }], [{ 0: "10.0.0.0/8" }]])(
  "%j is not a list: an empty one in its place would match every request",
  (object) => {
    expect(() => decode(routeInput, { name: "x", client_cidrs: object })).toThrow(
      "client_cidrs: must be a list",
    );
  },
);

test("a list is not an object, even where an object may have any members", () => {
  const list = { name: "x", health: { active: { headers: [1] } } };
  expect(() => decode(serviceInput, list)).toThrow("health.active.headers: must be an object");
  expect(() => decode(serviceInput, [])).toThrow();
});

describe("an accepted document", () => {
  test("gets every default, at every depth", () => {
    const service = decode(serviceInput, { name: "a", health: { active: { enabled: true } } });
    expect(service).toMatchObject({
      protocol: "http",
      host_header: "preserve",
      algorithm: "round_robin",
      connect_timeout: 5000,
      retries: { count: 2, methods: "idempotent" },
      health: {
        active: { enabled: true, path: "/", interval: 10 },
        passive: { enabled: true, consecutive_failures: 5 },
      },
      enabled: true,
      tags: [],
    });
  });

  test("leaves the input as it was, and shares nothing with the schema", () => {
    const input = { name: "a" };
    const first = decode(serviceInput, input);
    expect(input).toEqual({ name: "a" });
    first.tags.push("x");
    first.retries.on.push("429");
    const second = decode(serviceInput, input);
    expect(second.tags).toEqual([]);
    expect(second.retries.on).not.toContain("429");
  });
});

describe("a time", () => {
  const withTime = (expires_at: string) => () => decode(tokenInput, { name: "a", expires_at });

  test.each([
    "2026-01-31T12:00:00Z",
    "2026-01-31t12:00:00.123456z",
    "2024-02-29T23:59:59+05:30",
    "2026-01-31T12:00:00-00:00",
  ])("%s is valid", (text) => {
    expect(withTime(text)).not.toThrow();
  });

  test.each([
    ["2026-01-31", "a day is not enough"],
    ["2026-01-31T12:00:00", "in which time zone?"],
    ["2026-02-30T12:00:00Z", "there is no such day"],
    ["2026-01-31T25:00:00Z", "there is no such hour"],
    ["; touch /tmp/file-2026 #", "the runtime finds a year in it"],
    ["Sat, 31 Jan 2026 12:00:00 GMT", "the form of HTTP"],
    ["+016937-01-01T00:00:00Z", "a year of more than four digits"],
  ])("%s is invalid: %s", (text) => {
    expect(withTime(text)).toThrow("expires_at: must be a time, such as 2026-01-31T12:00:00Z");
  });
});

describe("a default that depends on another field: max_header_bytes", () => {
  const listener = (fields: object) => decode(listenerInput, { name: "l", port: 1, ...fields });
  const cases: [why: string, fields: object, bytes: number][] = [
    ["nothing is given", {}, 32_768],
    ["the engine bun", { client_auth: "request", engine: "bun" }, 16_384],
    ["a given value", { max_header_bytes: 16_384 }, 16_384],
    ["a given value of the engine bun", { engine: "bun", max_header_bytes: 4096 }, 4096],
  ];
  test.each(cases)("%s", (_, fields, bytes) => {
    const whole = listener(fields);
    expect(whole.max_header_bytes).toBe(bytes);
    // A minimal export is read as what it was made of.
    const short = withoutDefaults(listenerInput, whole) as object;
    expect(short).toEqual({ name: "l", port: 1, ...fields });
    expect(listener(short)).toEqual(whole);
  });

  test("the input is not changed", () => {
    const given = { name: "l", port: 1, engine: "sluice" };
    decode(listenerInput, given);
    expect(given).toEqual({ name: "l", port: 1, engine: "sluice" });
  });
});
