// concurrency-limit on a real gateway with four workers: never more at the target than allowed, and no request waits without limit.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const [MAX, CLIENTS, ROUNDS] = [3, 20, 15];
let gateway: Gateway;
let present = 0;
let most = 0;
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch() {
    most = Math.max(most, ++present);
    await Bun.sleep(1);
    present--;
    return new Response("ok");
  },
});

beforeAll(async () => {
  gateway = await startGateway({ workers: 4 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
  const config = { max: MAX, queue: CLIENTS, queue_timeout: 60_000 };
  await gateway.ok("POST", "/api/v1/plugins", { name: "concurrency-limit", config });
});
afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
});

test("all are served eventually, and never more at once than allowed", async () => {
  const client = async (own: number) => {
    const all: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`, {
        keepalive: own % 2 === 0,
      });
      await response.arrayBuffer();
      all.push(response.status);
    }
    return all;
  };
  const all = await Promise.all(Array.from({ length: CLIENTS }, (_, own) => client(own)));
  expect(new Set(all.flat())).toEqual(new Set([200]));
  expect(most).toBe(MAX);
});
