// Files that an older version exported, with the names that fields had then, and an API that knows only the present names.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";

let gateway: Gateway | null = null;
beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
});
afterAll(() => gateway?.stop());

// biome-ignore lint/suspicious/noExplicitAny: an object of the API
const get = (path: string): Promise<any> => gateway!.ok("GET", `/api/v1${path}`) as Promise<any>;

const run = (args: string[], input: string) =>
  runCommand(args, { input, env: { SLUICE_URL: gateway?.admin ?? "" } });

const formerly = (text: string) =>
  text
    .replaceAll("response_buffer_bytes:", "collect_bytes:")
    .replaceAll("response_buffer_budget_bytes:", "collect_budget_bytes:");

describe("an export of an older version", () => {
  const older = `format: 1
settings:
  limits:
    collect_budget_bytes: 1234567
services:
  - name: web
    collect_bytes: 4321
`;

  test("brings its values under the present names", async () => {
    const imported = await run(["import", "-"], older);
    expect([imported.code, imported.stdout]).toEqual([
      0,
      expect.stringContaining("limits.response_buffer_budget_bytes: 67108864 -> 1234567"),
    ]);
    expect(await get("/services/web")).toMatchObject({ response_buffer_bytes: 4321 });
    expect((await get("/settings")).limits.response_buffer_budget_bytes).toBe(1_234_567);
    for (const command of [
      ["diff", "-", "--exit-code"],
      ["check", "-"],
    ])
      expect((await run(command, older)).code).toBe(0);
  });

  test("of a whole gateway changes nothing where it was made", async () => {
    await gateway!.ok("POST", "/api/v1/applications", {
      name: "wiki",
      domains: ["wiki.test"],
      upstream: "http://127.0.0.1:9",
      https: { mode: "off" },
    });
    const { stdout } = await run(["export"], "");
    const text = formerly(stdout);
    expect(text).toContain("collect_bytes:");
    const imported = await run(["import", "-", "--mode", "replace"], text);
    expect([imported.stdout, imported.stderr]).toEqual(["no changes\n", ""]);
  });

  test("brings listeners with the engines of today, and says so", async () => {
    const listener = (name: string, port: number, fields: string) =>
      `  - name: ${name}\n    address: 127.0.0.1\n    port: ${port}\n    enabled: false\n${fields}`;
    const text = `format: 1
listeners:
${listener("old-full", 7001, "    engine: full\n    shared_engines: false\n")}${listener("old-both", 7002, "    protocol: https\n    shared_engines: true\n")}${listener("old-standard", 7003, "    engine: standard\n    shared_engines: false\n")}${listener("old-limited", 7004, "    max_connections: 5\n")}routes:
  - name: old-exact
    hosts: [exact.test]
    exact_responses: "on"
`;
    const imported = await run(["import", "-"], text);
    expect(imported.code).toBe(0);
    expect(imported.stderr).toContain('listeners have the engines "sluice" and "bun" now');
    expect(imported.stderr).toContain("exact_responses of routes is gone");
    const engines = ["old-full", "old-both", "old-standard", "old-limited"].map(
      async (name) => (await get(`/listeners/${name}`)).engine,
    );
    expect(await Promise.all(engines)).toEqual(["sluice", "sluice", "sluice", "sluice"]);
    expect(await get("/routes/old-exact")).not.toContainKey("exact_responses");
    expect((await run(["diff", "-", "--exit-code"], text)).code).toBe(0);
  });

  test("cannot set a value under both names", async () => {
    const both = `${older}    response_buffer_bytes: 1\n`;
    const imported = await run(["import", "-"], both);
    expect(imported.code).toBe(1);
    expect(imported.stderr).toContain(
      "services[0].collect_bytes: is not a known field (line 7, column 5)",
    );
  });
});

test.each([
  ["POST /services", { name: "x", collect_bytes: 1 }, "collect_bytes"],
  ["PATCH /services/web", { collect_bytes: 1 }, "collect_bytes"],
  ["PATCH /settings", { limits: { collect_budget_bytes: 1 } }, "limits.collect_budget_bytes"],
])("%s refuses the old name", async (line, body, field) => {
  const [method = "", path = ""] = line.split(" ");
  const response = await gateway!.api(method, `/api/v1${path}`, body);
  expect([response.status, await response.json()]).toEqual([
    400,
    { error: `${field}: is not a known field` },
  ]);
});

test.each([
  [{ engine: "full" }, 'engine: must be one of "sluice", "bun": "full" is "sluice" now'],
  [{ engine: "standard" }, 'engine: must be one of "sluice", "bun": "standard" is "sluice" now'],
  [{ shared_engines: true }, 'shared_engines: is gone: engine "sluice" serves all host names'],
])("a listener with %j is refused with what to do", async (fields, message) => {
  const requests = [
    ["POST", "", { name: "l", port: 7009, ...fields }],
    ["PATCH", "/http", fields],
  ] as const;
  for (const [method, path, body] of requests) {
    const response = await gateway!.api(method, `/api/v1/listeners${path}`, body);
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining(JSON.stringify(message).slice(1, -1)),
    ]);
  }
});

test("a route with exact_responses is refused with what to do", async () => {
  const response = await gateway!.api("POST", "/api/v1/routes", { exact_responses: "on" });
  expect(await response.text()).toContain("exact_responses: is gone: on listeners with engine");
});
