// The commands of the guides for a home lab and for a server at the edge, taken from the pages and run against the executable.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "curl");

let gateway: Gateway;
let token = "";
const httpsPort = quietPort();

beforeAll(async () => {
  // The installer's value: a stream that shares the port must have the same address.
  gateway = await startGateway({ binary: executable, args: ["--https", `0.0.0.0:${httpsPort}`] });
  const made = await runCommand(["token", "--data-dir", gateway.dataDir], { binary: executable });
  token = made.stdout.trim();
});
afterAll(() => gateway?.stop());

/** Commands for the management API; the others are for other programs. */
const blocksOf = (name: string) =>
  [
    ...readFileSync(resolve(import.meta.dir, "../../docs", name), "utf8").matchAll(
      /```sh\n(.*?)```/gs,
    ),
  ]
    .map(([, text = ""]) => text)
    .filter((text) => text.includes("/api/v1/") && !text.includes("sudo"));

test.each([
  ["home-lab.md", 1],
  ["edge-vps.md", 3],
] as const)("%s", async (page, count) => {
  const blocks = blocksOf(page);
  expect(blocks.length).toBe(count);
  for (const block of blocks) {
    const script = block
      .replaceAll("http://127.0.0.1:9080", gateway.admin)
      .replaceAll('"listen_port":443', `"listen_port":${httpsPort}`)
      .replaceAll("curl http", "curl -sS --fail-with-body http")
      .replaceAll("curl -X", "curl -sS --fail-with-body -X");
    const child = Bun.spawn(["sh", "-ec", script], {
      env: { PATH: process.env["PATH"] ?? "", SLUICE_TOKEN: token },
      stdout: "pipe",
      stderr: "pipe",
    });
    const text = await new Response(child.stdout).text();
    expect([await child.exited, text.slice(0, 300)]).toEqual([0, expect.any(String)]);
  }
});

test("afterwards the gateway behaves as the guide for the edge describes", async () => {
  const { listeners, settings, routes } = {
    listeners: await gateway.ok("GET", "/api/v1/listeners/https"),
    settings: await gateway.ok("GET", "/api/v1/settings"),
    routes: await gateway.ok("GET", "/api/v1/stream-routes/home"),
  };
  expect(listeners.max_connections_per_address).toBe(200);
  expect(settings.limits.max_in_flight_requests).toBe(5000);
  expect(routes).toMatchObject({ sni: ["*.home.example.com"], proxy_protocol_out: "v2" });
});
