// What forms by a schema show, send and say about their values, without a browser.
import { describe, expect, test } from "bun:test";
import { formSchemaOf, formSchemas } from "../../../src/model/form-schema.ts";
import { scaleOf } from "../../../src/ui/parts/schema/number-field.tsx";
import { problemsOf } from "../../../src/ui/parts/schema/problems.ts";
import { type JsonSchema, optionsOf } from "../../../src/ui/parts/schema/shape.ts";
import {
  besideValues,
  summaryOf,
  toChecked,
  toSent,
  withDefaults,
} from "../../../src/ui/parts/schema/values.ts";
import { movedDefaults, ofStored, schemaOptions } from "../../../src/ui/parts/schema-fields.tsx";

const asJson = (schema: unknown) => JSON.parse(JSON.stringify(schema)) as JsonSchema;
const stream = formSchemaOf("stream-routes") as JsonSchema;
const route = formSchemaOf("routes") as JsonSchema;
const service = formSchemaOf("services") as JsonSchema;

test("a new object has every default, and nothing else", () => {
  const values = withDefaults(stream, { service_id: "s", created_at: "now" });
  expect(values).toMatchObject({ protocol: "tcp", listen_port: null, sni: [], idle_timeout: 600 });
  expect(Object.keys(values)).not.toContain("created_at");
  expect(Object.keys(values)).not.toContain("name");
});

test("fields that are no longer shown are sent with their defaults", () => {
  const entered = { protocol: "udp", tls_mode: "terminate", sni: ["a.test"], port_range: "10-20" };
  expect(toSent(stream, { ...entered, proxy_protocol_in: true })).toMatchObject({
    listen_port: null,
    port_range: "10-20",
    tls_mode: "none",
    sni: [],
    proxy_protocol_in: false,
  });
});

test("an input that was emptied is sent with its default", () => {
  expect(toSent(stream, { idle_timeout: undefined })).toMatchObject({ idle_timeout: 600 });
});

describe("an unchanged form sends nothing", () => {
  test("of a route, with a path that the API had as text", () => {
    const { toValues, toBody } = schemaOptions(route);
    const read = { id: "1", name: "r", paths: [{ type: "regex", value: "^/a" }, "/b"] };
    const body = toBody(toValues(read));
    expect(body["paths"]).toEqual(read.paths);
    expect(toBody(toValues(body))).toEqual(body);
  });

  test("of a stored service: its targets are not part of it", () => {
    const { toValues, toBody } = schemaOptions(ofStored(service));
    const body = toBody(toValues({ id: "1", name: "web", targets: [] }));
    expect("targets" in body).toBe(false);
    expect(problemsOf(ofStored(service), body)).toEqual([]);
    expect(body["health"]).toMatchObject({ passive: { statuses: [502, 503, 504] } });
  });
});

test("a field that another one asks for is needed while it is shown", () => {
  const listener = formSchemaOf("listeners") as JsonSchema;
  const check = (client_auth: string) =>
    problemsOf(
      listener,
      toChecked(listener, { name: "x", port: 1, protocol: "https", client_auth }),
    );
  expect(check("none")).toEqual([]);
  expect(check("require").map(({ path, message }) => [path, message])).toEqual([
    ["client_ca", "Client CAs are required"],
  ]);
});

test("what only the code of the gateway checks shows while the user types", () => {
  const found = problemsOf(route, toChecked(route, { hosts: ["a.test", "https://a.test"] }));
  expect(found.map(({ path }) => path)).toEqual(["hosts.1"]);
});

describe("rows", () => {
  const schema: JsonSchema = {
    properties: {
      rows: {
        type: "array",
        default: [],
        items: {
          type: "object",
          required: ["name"],
          properties: {
            name: { type: "string", minLength: 1 },
            op: { type: "string", enum: ["is", "exists"], default: "is" },
            value: { type: "string", default: "", form: { when: { op: ["is"] } } },
          },
        },
      },
    },
  };
  const entered = {
    rows: [{}, { name: "a", op: "exists", value: "forgotten" }, { value: "no name" }],
  };

  test("without any input are not sent, and hidden parts of others neither", () => {
    expect(toSent(schema, entered)["rows"]).toEqual([
      { name: "a", op: "exists", value: "" },
      { op: "is", value: "no name" },
    ]);
  });

  test("are validated at their own place", () => {
    const found = problemsOf(schema, toChecked(schema, entered));
    expect(found.map(({ path, message }) => [path, message])).toEqual([
      ["rows.2.name", "Name is required"],
    ]);
  });
});

test("a summary names what differs from the defaults, with labels and units", () => {
  const fields = stream.properties ?? {};
  const values = withDefaults(stream, {});
  expect(summaryOf(fields, values)).toBe("");
  expect(summaryOf(fields, { ...values, idle_timeout: 120, proxy_protocol_out: "v2" })).toBe(
    "Send it to targets: Version 2, binary; Idle timeout: 2 min",
  );
});

test("errors of the API find their field, also in lists", () => {
  const { hasField } = schemaOptions(stream);
  expect(["listen_port", "sni.0", "nothing", ""].map((path) => hasField(path, {}))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test.each([
  ["ms", 5000, "s"],
  ["ms", 1500, "ms"],
  ["s", 0, "s"],
  ["s", 7200, "h"],
  ["B", 1_048_576, "MiB"],
] as const)("%s %d is shown in %s", (unit, value, label) => {
  expect(scaleOf(unit, value).label).toBe(label);
});

test.each(Object.entries(formSchemas))("the defaults of %s are valid", (_, whole) => {
  const schema = asJson(whole);
  const problems = problemsOf(schema, toChecked(schema, {}));
  expect(problems.filter(({ isMissing }) => !isMissing)).toEqual([]);
});

/** All fields with form facts, by their path. */
function fieldsOf(schema: JsonSchema, path = ""): (readonly [string, JsonSchema, JsonSchema])[] {
  return optionsOf(schema).flatMap((option) => {
    const { properties = {}, items } = option;
    const own = Object.entries(properties).flatMap(([name, field]) => [
      [`${path}.${name}`, field, option] as const,
      ...fieldsOf(field, `${path}.${name}`),
    ]);
    return items === undefined ? own : [...own, ...fieldsOf(items, path)];
  });
}

describe.each(Object.entries(formSchemas))("the form facts of %s", (_, schema) => {
  test.each(fieldsOf(asJson(schema)))("are right at %s", (_path, field, owner) => {
    const { group, when = {}, options, only, of } = field.form ?? {};
    const groups = owner.form?.groups ?? [];
    if (group !== undefined && group !== "labels")
      expect(groups.map(({ id }) => id)).toContain(group);
    for (const [name, values] of [when].flat().flatMap((each) => Object.entries(each))) {
      const beside = owner.properties?.[name];
      expect(beside).toBeDefined();
      for (const value of values)
        expect(
          problemsOf(beside as JsonSchema, beside?.type === "array" ? [value] : value),
        ).toEqual([]);
    }
    if (field.enum !== undefined && options !== undefined)
      expect(Object.keys(options).toSorted()).toEqual(field.enum.map(String).toSorted());
    if (only !== undefined) expect(of).toBeDefined();
  });
});

describe("a default that depends on another field", () => {
  const listener = formSchemaOf("listeners") as JsonSchema;
  const { toValues, toBody } = schemaOptions(listener);
  const initial = (values: object) =>
    besideValues(listener, { ...values }).properties?.["max_header_bytes"]?.default;

  test("is shown and sent beside the values that it depends on", () => {
    expect([initial({}), initial({ engine: "sluice" })]).toEqual([32_768, 32_768]);
    expect(initial({ engine: "bun" })).toBe(16_384);
    expect(toValues({})).toMatchObject({ max_header_bytes: 32_768 });
    expect(toValues({ engine: "bun" })).toMatchObject({ max_header_bytes: 16_384 });
    const emptied = { engine: "bun", max_header_bytes: undefined };
    expect(toBody(emptied)).toMatchObject({ max_header_bytes: 16_384 });
    const own = { engine: "bun", max_header_bytes: 4096 };
    expect(toBody(toValues(own))).toMatchObject(own);
  });

  test("changes with them until the user enters a value", () => {
    const before = toValues({});
    const after = { ...before, engine: "bun" };
    expect(movedDefaults(listener, before, after)).toEqual([["max_header_bytes", 16_384]]);
    const back = { ...toValues(after), max_header_bytes: 16_384 };
    expect(movedDefaults(listener, back, { ...back, engine: "sluice" })).toEqual([
      ["max_header_bytes", 32_768],
    ]);
    const own = { max_header_bytes: 4096 };
    expect(movedDefaults(listener, { ...before, ...own }, { ...after, ...own })).toEqual([]);
    expect(movedDefaults(listener, before, { ...before, engine: "sluice" })).toEqual([]);
  });
});
