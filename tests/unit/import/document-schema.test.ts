// The JSON Schema of configuration files, in another program's validator: it accepts what the gateway does, and refuses mistakes.
import { Ajv, type AnySchemaObject } from "ajv";
import { describe, expect, test } from "bun:test";
import { documentSchema } from "../../../src/import/document-schema.ts";
import { catalogueOf, loadPlugins } from "../../../src/pdk/catalogue.ts";
import { pluginFiles } from "../../../src/plugins/index.ts";

const schema = documentSchema(catalogueOf(await loadPlugins(pluginFiles)));
const ajv = new Ajv({
  strict: true,
  strictTypes: true,
  strictRequired: true,
  formats: { "date-time": true, uuid: true },
});
const validate = ajv.compile(schema);

const errorsOf = (document: unknown): string[] => {
  validate(document);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
};

const wiki = { name: "wiki", domains: ["wiki.test"], upstream: "http://10.0.0.5:3000" };

describe("a document", () => {
  test("of hand-written objects is valid with defaults left out", () => {
    const routes = [{ name: "wiki", service_id: "wiki", hosts: ["wiki.test"], paths: ["/x"] }];
    const limits = [{ requests: 10, window: 60 }];
    const plugins = [{ name: "rate-limit", route_id: "wiki", config: { limits } }];
    const document = { format: 1, services: [{ name: "wiki" }], routes, plugins };
    expect(errorsOf(document)).toEqual([]);
    expect(errorsOf({ applications: [wiki], settings: { trusted_proxies: [] } })).toEqual([]);
  });

  test.each([
    [{ route: [] }, "must NOT have additional properties"],
    [{ applications: [{ ...wiki, domain: "x" }] }, "must NOT have additional properties"],
    [{ applications: [{ name: "wiki" }] }, "must have required property 'domains'"],
    [{ routes: [{ priority: "high" }] }, "must be integer"],
    [{ plugins: [{ name: "rate-limiting" }] }, "must be equal to one of the allowed values"],
    [{ plugins: [{ name: "rate-limit", config: { limit: [] } }] }, "required property 'limits'"],
    [{ format: 2 }, "must be equal to constant"],
    [{ format: "1" }, "must be equal to constant"],
    [{ services: { name: "web" } }, "must be array"],
    [
      { services: [{ name: "web", protocol: "ftp" }] },
      "must be equal to one of the allowed values",
    ],
    [{ listeners: [{ name: "x", address: "::", port: 70_000 }] }, "must be <= 65535"],
    [{ settings: { limits: { unknown: 1 } } }, "must NOT have additional properties"],
    [{ alerts: [{ name: "x", type: "webhook" }] }, "must have required property 'events'"],
    [[], "must be object"],
  ])("%j is refused", (document, message) => {
    expect(errorsOf(document).join()).toContain(message);
  });
});

describe("the schema is ready for SchemaStore", () => {
  const { $id, $schema, title, description } = schema as AnySchemaObject;

  test("with an id, a draft that editors support, a title and a description", () => {
    expect([$id, $schema, title]).toEqual([
      "https://json.schemastore.org/sluice.json",
      "http://json-schema.org/draft-07/schema#",
      "Configuration of Sluice",
    ]);
    expect(description).toStartWith("What `sluice apply`");
  });

  test("and a description of every member of a configuration file", () => {
    const members = Object.entries(schema["properties"] as Record<string, AnySchemaObject>);
    const bare = members.filter(([, member]) => typeof member["description"] !== "string");
    expect(bare.map(([name]) => name)).toEqual([]);
  });

  test("and defaults that fit", () => {
    const misfits: string[] = [];
    // A compilation takes a while, and most parts are there several times.
    const seen = new Set<string>();
    const isNew = (part: unknown) => seen.size < seen.add(JSON.stringify(part)).size;
    const visit = (part: unknown, path: string): void => {
      if (typeof part !== "object" || part === null) return;
      const { default: usual, ...rest } = part as AnySchemaObject;
      const isSchema = usual !== undefined && !path.endsWith("/properties");
      if (isSchema && isNew(part) && !ajv.validate(rest, usual))
        misfits.push(`${path}: ${ajv.errorsText()}`);
      for (const [name, inner] of Object.entries(part)) visit(inner, `${path}/${name}`);
    };
    visit(schema, "");
    expect(misfits).toEqual([]);
  });
});
