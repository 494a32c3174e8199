// `sluice check FILE` lists everything that is wrong with a file, with its place and the nearest known name.
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand, startGateway } from "../../support/gateway.ts";

const scratch = mkdtempSync(join(tmpdir(), "sluice-check-"));
afterAll(() => rmSync(scratch, { recursive: true }));

async function check(text: string, ending = "yaml") {
  const path = join(scratch, `file.${ending}`);
  writeFileSync(path, text);
  const { code, stdout } = await runCommand(["check", path]);
  return { code, lines: stdout.split("\n").slice(0, -1) };
}

const FILE = `format: 1
rotes: []
services:
  - name: shop
    protocol: htp
    conect_timeout: 5
    load_balancing: 7
  - name: web
    targets:
      - host: 127.0.0.1
        prt: 80
routes:
  - name: a
    service_id: shop
    hots: [a.test]
  - name: b
    service_id: wep
    hosts: ["a b"]
settings:
  limits:
    max_in_flight_request: 1
`;

test("all of a YAML file", async () => {
  const { code, lines } = await check(FILE);
  expect(code).toBe(1);
  expect(lines).toEqual([
    'rotes: is not a known field; did you mean "routes"? (line 2, column 1)',
    expect.stringMatching(
      /^services\[0\]\.protocol: must be one of "http".*; did you mean "http"\? \(line 5, column 5\)$/,
    ),
    'services[0].conect_timeout: is not a known field; did you mean "connect_timeout"? (line 6, column 5)',
    "services[0].load_balancing: is not a known field (line 7, column 5)",
    'services[1].targets[0].prt: is not a known field; did you mean "port"? (line 11, column 9)',
    'routes[0].hots: is not a known field; did you mean "hosts"? (line 15, column 5)',
    'routes[1].service_id: service "wep" does not exist; did you mean "web"? (line 17, column 5)',
    expect.stringMatching(/^routes\[1\]\.hosts\[0\]: .* \(line 18, column 13\)$/),
    'settings.limits.max_in_flight_request: is not a known field; did you mean "max_in_flight_requests"? (line 21, column 5)',
  ]);
});

test("of JSON, at the names of members", async () => {
  const text = '{"format": 1,\n "routes": [{"name": "a", "hots": 1, "priority": "x"}],\n "x": 1}';
  expect((await check(text, "json")).lines).toEqual([
    'routes[0].hots: is not a known field; did you mean "hosts"? (line 2, column 27)',
    expect.stringMatching(/^routes\[0\]\.priority: must be an integer .* \(line 2, column 38\)$/),
    "x: is not a known field (line 3, column 2)",
  ]);
});

test.each([
  {
    text: "format: 1\nservices: 3\nroutes: {}\n",
    says: [
      "services: must be a list (line 2, column 1)",
      "routes: must be a list (line 3, column 1)",
    ],
  },
  {
    text: "format: 1\nroutes: [3, {name: a, id: x}]\n",
    says: [
      "routes[0]: must be an object (line 2, column 10)",
      "routes[1].id: must be an id (line 2, column 23)",
    ],
  },
  {
    text: "format: 9\n",
    says: [expect.stringContaining("format: 9 was written by a newer program")],
  },
  {
    text: "format: 1\nrouts: []\n",
    says: ['routs: is not a known field; did you mean "routes"? (line 2, column 1)'],
  },
])("$text", async ({ text, says }) => {
  expect<unknown>(await check(text)).toEqual({ code: 1, lines: says });
});

test("targets of a service in a file are those of the API", async () => {
  const text = `format: 1
services:
  - name: web
    targets: [{host: 127.0.0.1, port: 80}, {host: 127.0.0.1, port: 81, weight: 5}]
routes: [{name: web, service_id: web, hosts: [a.test]}]
`;
  expect((await check(text)).lines[0]).toEndWith("can be served: services 1, targets 2, routes 1");
  const gateway = await startGateway();
  try {
    const run = async (document: string, mode: string) => {
      const path = join(scratch, "own.yaml");
      writeFileSync(path, document);
      const words = ["--url", gateway.admin, "--mode", mode];
      const { code, stderr } = await runCommand(["import", path, ...words]);
      expect([code, stderr]).toEqual([0, ""]);
      const targets: { port: number; weight: number }[] = await gateway.ok(
        "GET",
        "/api/v1/services/web/targets",
      );
      return targets.map(({ port, weight }) => `${port} ${weight}`);
    };
    expect(await run(text, "merge")).toEqual(["80 100", "81 5"]);
    const before = await gateway.ok("GET", "/api/v1/services/web/targets");
    // The list is whole, and what stays is the same target.
    expect(await run(text.replace("port: 80", "port: 82"), "merge")).toEqual(["81 5", "82 100"]);
    const after = await gateway.ok("GET", "/api/v1/services/web/targets");
    expect(after[0].id).toBe(before[1].id);
    expect(await run(text.replace(/ targets: .*/, " targets: []"), "replace")).toEqual([]);
    expect(await run(text, "replace")).toEqual(["80 100", "81 5"]);
    expect(await run(text.replace(/\n +targets: .*/, ""), "merge")).toEqual(["80 100", "81 5"]);
  } finally {
    await gateway.stop();
  }
});
