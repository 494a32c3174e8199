// Limits of requests in listeners, routes and settings: defaults and bounds.
import { expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import { decode } from "../../../src/model/decode.ts";
import { listenerInput } from "../../../src/model/listener.ts";
import { routeInput } from "../../../src/model/route.ts";
import { settingsInput } from "../../../src/model/settings.ts";

const listener = { name: "web", port: 80 };

test("the defaults match the docs", () => {
  expect(decode(listenerInput, listener).body_min_rate).toBe(500);
  expect(decode(routeInput, {}).body_min_rate).toBeNull();
  expect(decode(settingsInput, {}).limits).toMatchObject({
    head_read_timeout: 15_000,
    body_min_rate_grace: 30_000,
    max_aborted_per_connection: 300,
    max_aborted_per_address: 2000,
  });
});

const limits = (name: string, most: number) => ({
  what: `settings.limits.${name}`,
  schema: settingsInput as TSchema,
  of: (value: unknown): object => ({ limits: { [name]: value } }),
  most,
});

test.each([
  {
    what: "listener.body_min_rate",
    schema: listenerInput as TSchema,
    of: (value: unknown): object => ({ ...listener, body_min_rate: value }),
    most: 1_000_000_000,
  },
  {
    what: "route.body_min_rate",
    schema: routeInput as TSchema,
    of: (value: unknown): object => ({ body_min_rate: value }),
    most: 1_000_000_000,
  },
  limits("head_read_timeout", 86_400_000),
  limits("body_min_rate_grace", 86_400_000),
  limits("max_aborted_per_connection", 1_000_000),
  limits("max_aborted_per_address", 1_000_000),
])("$what accepts 0 to $most", ({ what, schema, of, most }) => {
  const field = what.slice(what.lastIndexOf(".") + 1);
  for (const value of [0, most]) expect(() => decode(schema, of(value))).not.toThrow();
  for (const value of [-1, most + 1, 0.5, "1"])
    expect(() => decode(schema, of(value))).toThrow(field);
});
