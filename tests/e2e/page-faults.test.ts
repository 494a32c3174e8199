// Memory of the executable's requests: new pages that it gets from the system, and the engine's limit of new objects.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { QuickConnection } from "../support/quick-http.ts";
import { executable } from "../support/executable.ts";

const { afterAll, test } = needs("executable");

const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const CONNECTIONS = 48;
const REQUESTS = 60_000;
/** Without collections after a number of requests there are 0.15 to 0.3. */
const MOST_PER_REQUEST = 0.05;
/** The system takes pages back on its own when it is busy, so that a single round may have more. */
const ROUNDS = 12;

/** Minor page faults of a process so far (proc(5)). */
function pageFaults(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[7]);
}

const LIMIT = "BUN_JSC_gcMaxHeapSize";

/** Environment of a process when its program started (proc(5)). */
const environmentOf = (pid: number) => readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");

test.each([
  { why: "32 MB by default", env: {}, limit: "33554432" },
  { why: "what the user has set", env: { [LIMIT]: "67108864" }, limit: "67108864" },
])("the engine collects new objects after $why", async ({ env, limit }) => {
  const gateway = await startGateway({ binary: executable, workers: 1, env });
  cleanups.push(() => gateway.stop());
  const set = environmentOf(gateway.pid).filter((entry) => entry.startsWith(`${LIMIT}=`));
  expect(set).toEqual([`${LIMIT}=${limit}`]);
});

test("requests reuse the memory of earlier ones", async () => {
  const fetch = () => new Response("x".repeat(64));
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  cleanups.push(() => origin.stop(true));
  const gateway = await startGateway({ binary: executable, workers: 1 });
  cleanups.push(() => gateway.stop());
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "origin", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => QuickConnection.open(gateway.httpPort)),
  );
  const load = () =>
    Promise.all(
      connections.map(async (connection) => {
        for (let count = 0; count < REQUESTS / CONNECTIONS; count++)
          expect((await connection.get("/")).status).toBe(200);
      }),
    );
  // Compiles the code and fills caches and pools.
  await load();
  let fewest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS && fewest >= MOST_PER_REQUEST; round++) {
    const before = pageFaults(gateway.pid);
    await load();
    fewest = Math.min(fewest, (pageFaults(gateway.pid) - before) / REQUESTS);
  }
  expect(fewest).toBeLessThan(MOST_PER_REQUEST);
});
