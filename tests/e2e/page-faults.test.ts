// What a proxied request costs in memory pages that the system hands out: exactly counted, because a clock cannot hold it.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/variants.ts";

const { test } = needs("executable", "linux");

const REQUESTS = 20_000;
const CONNECTIONS = 32;
const ROUNDS = 5;

test("a proxied request causes at most 0.1 minor page faults", async () => {
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  const gateway = await startGateway({ workers: 1, binary: executable });
  try {
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await gateway.ok("POST", "/api/v1/services", { name: "all", targets });
    await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "all", paths: ["/"] });
    const url = `http://127.0.0.1:${gateway.httpPort}/`;
    const rounds: number[] = [];
    // The first rounds compile the code; other programs on the machine can take pages away in any.
    for (let round = 0; round < ROUNDS; round++) {
      const before = minorFaults(gateway.pid);
      await request(url, REQUESTS);
      rounds.push((minorFaults(gateway.pid) - before) / REQUESTS);
    }
    expect(Math.min(...rounds)).toBeLessThanOrEqual(0.1);
  } finally {
    await gateway.stop();
    await origin.stop(true);
  }
});

async function request(url: string, count: number): Promise<void> {
  let left = count;
  const client = async () => {
    while (left-- > 0) await (await fetch(url)).arrayBuffer();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
}

/** Field 10 of proc_pid_stat(5), of all threads. */
function minorFaults(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[7]);
}
