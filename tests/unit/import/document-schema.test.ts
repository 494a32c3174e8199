// The JSON Schema of configuration files, in another program's validator: it accepts what the gateway does, and refuses mistakes.
import Ajv2020 from "ajv/dist/2020.js";
import { describe, expect, test } from "bun:test";
import { documentSchema } from "../../../src/import/document-schema.ts";
import { catalogueOf, loadPlugins } from "../../../src/pdk/catalogue.ts";
import { pluginFiles } from "../../../src/plugins/index.ts";

const schema = documentSchema(catalogueOf(await loadPlugins(pluginFiles)));
const ajv = new Ajv2020({
  strict: true,
  strictTypes: false,
  strictRequired: false,
  validateFormats: false,
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
  ])("%j is refused", (document, message) => {
    expect(errorsOf(document).join()).toContain(message);
  });
});
