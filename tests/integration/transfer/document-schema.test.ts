// The JSON Schema that the gateway serves: its own exports and what it imports fit, and exports name it.
import { Ajv } from "ajv";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { fillGateway } from "../../support/filled-gateway.ts";
import { type Gateway, program, startGateway } from "../../support/gateway.ts";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway?.stop());

test("an export of every kind of object fits the schema that it names", async () => {
  await fillGateway(gateway, 9);
  const text = await (await gateway.api("GET", "/api/v1/export?format=yaml")).text();
  const [, url = ""] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? [];
  expect(url).toBe("sluice.schema.json");
  const public_url = gateway.admin;
  await gateway.ok("PATCH", "/api/v1/settings", { public_url });
  const named = await (await gateway.api("GET", "/api/v1/export?format=yaml")).text();
  const [, address = ""] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(named) ?? [];
  const schema = await (await fetch(address)).json();
  const ajv = new Ajv({ strict: true, formats: { "date-time": true, uuid: true } });
  const validate = ajv.compile(schema);
  validate(Bun.YAML.parse(text));
  expect(validate.errors ?? []).toEqual([]);
  const document = await gateway.ok("GET", "/api/v1/export");
  for (const [name, list] of Object.entries(document))
    if (Array.isArray(list)) expect([name, list.length > 0]).toEqual([name, true]);
  expect(validate({ ...document, routes: [{ host: "x" }] })).toBeFalse();
  const printed = Bun.spawnSync([...program(), "schema"]).stdout.toString();
  expect(JSON.parse(printed)).toEqual(schema);
});
