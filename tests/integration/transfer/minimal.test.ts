// A minimal export with the commands: its size, no difference, and an empty gateway that it makes equal.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Ajv } from "ajv";
import { fillGateway } from "../../support/filled-gateway.ts";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

let [first, second]: [Gateway | null, Gateway | null] = [null, null];
let [minimal, whole, filled, differences] = ["", "", "", ""];

const run = (gateway: Gateway, args: string[], input?: string) =>
  runCommand(args, {
    env: { SLUICE_URL: gateway.admin },
    ...(input === undefined ? {} : { input }),
  });
const exported = async (gateway: Gateway, ...flags: string[]) =>
  (await run(gateway, ["export", ...flags])).stdout;

/** Fifty applications as people configure them: a service with a target each, and a route. */
const typical = {
  format: 1,
  services: Array.from({ length: 50 }, (_, index) => ({ name: `service-${index}` })),
  targets: Array.from({ length: 50 }, (_, index) => ({
    service_id: `service-${index}`,
    host: `10.0.0.${index}`,
    port: 8080,
  })),
  routes: Array.from({ length: 50 }, (_, index) => ({
    name: `route-${index}`,
    service_id: `service-${index}`,
    hosts: [`app-${index}.example.com`],
    paths: ["/"],
  })),
};

beforeAll(async () => {
  first = await startGateway({ workers: 1 });
  await first.ok("POST", "/api/v1/import", typical);
  minimal = await exported(first, "--minimal");
  whole = await exported(first);
  await fillGateway(first, 9);
  filled = await exported(first, "--minimal");
  for (const flags of [[], ["--prune"]])
    differences += (await run(first, ["diff", "-", ...flags], filled)).stdout;
  // Both have the same listeners.
  await first.stop();
  second = await startGateway({ workers: 1 });
});
afterAll(() => second?.stop());

test("fifty routes with their services and targets take few lines", () => {
  expect(minimal.split("\n").length).toBeLessThan(550);
  expect(whole.split("\n").length).toBeGreaterThan(5000);
  expect(minimal).toStartWith("# yaml-language-server: $schema=sluice.schema.json\nformat: 1\n");
});

test("diff shows no difference, for every kind of object", () => {
  expect(differences).toBe("no changes\nno changes\n");
});

test("it fits the JSON Schema of configuration files", async () => {
  const schema = JSON.parse((await runCommand(["schema"])).stdout);
  const ajv = new Ajv({ strict: true, formats: { "date-time": true, uuid: true } });
  const validate = ajv.compile(schema);
  for (const text of [minimal, filled]) {
    validate(Bun.YAML.parse(text));
    expect(validate.errors ?? []).toEqual([]);
  }
});

test("apply makes an empty gateway equal", async () => {
  if (second === null) throw new Error("not started");
  const applied = await run(second, ["apply", "-", "--prune"], minimal);
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  expect(await exported(second, "--minimal")).toBe(minimal);
  expect(comparable(await exported(second))).toEqual(comparable(whole));
});

test("it is not offered with secrets", async () => {
  if (second === null) throw new Error("not started");
  const refused = await run(second, ["export", "--minimal", "--secrets"]);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining("--minimal: is not valid with --secrets"),
  ]);
  const answer = await second.api("GET", "/api/v1/export?minimal=1&secrets=1");
  expect([answer.status, await answer.json()]).toEqual([
    400,
    { error: "minimal: is not valid with secrets" },
  ]);
});

test("an application with a certificate of the gateway is only what was sent", async () => {
  const gateway = second;
  if (gateway === null) throw new Error("not started");
  const wiki = {
    name: "wiki",
    access: "private",
    domains: ["wiki.test"],
    https: { hsts: true, mode: "local_ca" },
    upstream: "http://127.0.0.1:9",
  };
  await gateway.ok("POST", "/api/v1/applications", wiki);
  await eventually(async () => (await gateway.ok("GET", "/api/v1/certificates")).length > 0);
  const text = await exported(gateway, "--minimal");
  const document = Bun.YAML.parse(text) as Record<string, unknown>;
  expect([document["applications"], document["certificates"], document["plugins"]]).toEqual([
    [wiki],
    [],
    [],
  ]);
  for (const flags of [[], ["--prune"]])
    expect((await run(gateway, ["diff", "-", ...flags], text)).stdout).toBe("no changes\n");
});

/** With positions for ids, and without times. */
function comparable(text: string): unknown {
  const document = Bun.YAML.parse(text) as Record<string, unknown>;
  let json = JSON.stringify(document);
  for (const [name, list] of Object.entries(document))
    if (Array.isArray(list))
      for (const [index, { id }] of list.entries()) json = json.replaceAll(id, `${name} ${index}`);
  return JSON.parse(json, (name, value) => (/^(created|updated)_at$/.test(name) ? "" : value));
}
