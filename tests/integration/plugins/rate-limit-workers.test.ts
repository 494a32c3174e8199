// rate-limit on a real gateway with four workers: limits are exact over all of them, and kept counts outlive the gateway.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";

const CLIENTS = 24;
/** So long that no test sees the border of two of them, unless it runs at the turn of the year. */
const YEAR = 31_536_000;

let gateway: Gateway;
let origin: Origin;
let plugin: string | null = null;

beforeAll(async () => {
  origin = startOrigin();
  gateway = await startGateway({ workers: 4 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

/** The plugin alone, with counts of its own. */
async function limit(config: object): Promise<void> {
  if (plugin !== null) await gateway.ok("DELETE", `/api/v1/plugins/${plugin}`);
  const made = await gateway.ok("POST", "/api/v1/plugins", { name: "rate-limit", config });
  plugin = made.id as string;
}

const ask = (headers: Record<string, string> = {}, keepalive = true) =>
  fetch(`http://127.0.0.1:${gateway.httpPort}/`, { headers, keepalive });

/** Statuses of so many requests, from many connections at once, some of them used once. */
async function hammer(
  requests: number,
  headersOf: (index: number) => Record<string, string> = () => ({}),
): Promise<Map<number, number>> {
  const seen = new Map<number, number>();
  let next = 0;
  const client = async (own: number) => {
    while (next < requests) {
      const index = next++;
      const response = await ask(headersOf(index), own % 2 === 0);
      await response.arrayBuffer();
      seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, own) => client(own)));
  return seen;
}

describe("of 1500 requests over four workers", () => {
  test.each(["fixed", "sliding", "token_bucket"])(
    "a limit of 1000 (%s) allows exactly 1000",
    async (algorithm) => {
      await limit({ limits: [{ requests: 1000, window: YEAR, algorithm }] });
      const seen = await hammer(1500);
      expect(Object.fromEntries(seen)).toEqual({ 200: 1000, 429: 500 });
    },
  );

  test("two limits allow no more than either of them, and never count what the other refuses", async () => {
    const limits = [
      { name: "all", requests: 600, window: YEAR, algorithm: "fixed", key: "service" },
      { name: "app", requests: 100, window: YEAR, algorithm: "fixed", key: "header:X-App" },
    ];
    await limit({ limits });
    // Ten applications with 150 requests each: six of them would use up everything.
    const apps = (index: number) => ({ "X-App": `app ${index % 10}` });
    const seen = await hammer(1500, apps);
    expect(seen.get(200)).toBeLessThanOrEqual(600);
    // Refused for a moment's sake or not: what is left can be had afterwards.
    let passed = seen.get(200) ?? 0;
    for (let app = 0; app < 10; app++)
      for (;;) {
        const { status } = await ask({ "X-App": `app ${app}` });
        if (status !== 200) break;
        passed++;
      }
    expect(passed).toBe(600);
  });
});

describe("persisted counts", () => {
  const config = { limits: [{ requests: 3, window: YEAR, algorithm: "fixed" }], persist: true };
  const spend = async (times: number) => {
    const all: number[] = [];
    for (let index = 0; index < times; index++) all.push((await ask()).status);
    return all;
  };
  const file = () => join(gateway.dataDir, "counters.bin");

  test("survive a stop", async () => {
    await limit(config);
    expect(await spend(2)).toEqual([200, 200]);
    await gateway.restart();
    expect(await spend(2)).toEqual([200, 429]);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
  });

  test("survive a crash, except for the last seconds", async () => {
    await limit(config);
    expect(await spend(2)).toEqual([200, 200]);
    const from = Date.now();
    await eventually(() => existsSync(file()) && statSync(file()).mtimeMs > from);
    await gateway.kill9();
    await gateway.start();
    expect(await spend(2)).toEqual([200, 429]);
  });

  test("are lost unless persisted, or when the file is damaged", async () => {
    await limit({ ...config, persist: false });
    expect(await spend(4)).toEqual([200, 200, 200, 429]);
    await gateway.restart();
    expect(await spend(1)).toEqual([200]);
    await gateway.kill9();
    writeFileSync(file(), "not counts at all, but long enough to be looked at");
    await gateway.start();
    expect(await spend(1)).toEqual([200]);
  });
});
