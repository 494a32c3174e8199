// circuit-breaker on a real gateway with four workers: all of them leave the service alone, and the metrics say so.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
let reached = 0;
let status = 500;
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch() {
    reached++;
    return new Response("", { status });
  },
});

beforeAll(async () => {
  gateway = await startGateway({ workers: 4 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "circuit-breaker",
    label: "breaker",
    config: { min_requests: 10, open_for: 1, window: 3600 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
});

/** On a connection of its own, so that any worker may get it. */
const ask = async () => {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`, { keepalive: false });
  await response.arrayBuffer();
  return response;
};

const shown = async () => {
  const text = await (await gateway.api("GET", "/metrics")).text();
  return /^sluice_circuit_state\{plugin="breaker",service="web"\} (\d)$/m.exec(text)?.[1];
};

test("a circuit opens and closes for all workers together", async () => {
  expect(await shown()).toBe("0");
  for (let index = 0; index < 10; index++) expect((await ask()).status).toBe(500);
  expect(reached).toBe(10);
  const all = await Promise.all(Array.from({ length: 20 }, ask));
  if ((await shown()) === "2") expect(reached).toBe(10);
  expect(all.filter((response) => response.status === 503).length).toBeGreaterThan(0);
  await eventually(async () => (await shown()) === "1");
  status = 200;
  await eventually(async () => (await ask()).status === 200);
  await eventually(async () => {
    await ask();
    return (await shown()) === "0";
  });
  expect((await Promise.all(Array.from({ length: 20 }, ask))).map((each) => each.status)).toEqual(
    Array.from({ length: 20 }, () => 200),
  );
});
