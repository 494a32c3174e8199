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

  test("cannot set a value under both names", async () => {
    const both = `${older}    response_buffer_bytes: 1\n`;
    const imported = await run(["import", "-"], both);
    expect(imported.code).toBe(1);
    expect(imported.stderr).toContain("services[0].collect_bytes: is not a known field (line 7)");
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
