// Measures what a rate limit costs a request while it counts very many clients; knows no other proxy.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { loadWithWrk, percentile } from "./load.ts";
import {
  type ManyTargetsInput,
  type ManyTargetsResult,
  startWith,
  targetsOf,
} from "./many-targets.ts";
import { processorTimeUs } from "./processes.ts";
import type { RunningSluice } from "./sluice.ts";

/** Clients that take turns, so that each of them is counted all the time. */
const CLIENTS = 100_000;
const FILE = "64B";

/**
 * Two gateways behind a trusted proxy that names another client with each request; one of them has a sliding limit by address,
 * which nobody reaches.
 */
export async function measureLimits(input: ManyTargetsInput): Promise<ManyTargetsResult> {
  const service = { targets: targetsOf(input, 1) };
  const free = await startWith(input, "no-limit", service);
  try {
    const limited = await startWith(input, "limit", service);
    try {
      for (const { api } of [free, limited])
        await api.send("PATCH", "/api/v1/settings", { trusted_proxies: ["127.0.0.1"] });
      const limits = [{ requests: 1_000_000, window: 3600, algorithm: "sliding", key: "ip" }];
      await limited.api.send("POST", "/api/v1/plugins", {
        name: "rate-limit",
        config: { limits },
      });
      return await compare([free, limited], input);
    } finally {
      await limited.program.stop();
    }
  } finally {
    await free.program.stop();
  }
}

async function compare(
  [free, limited]: readonly [RunningSluice, RunningSluice],
  { scratch, seconds, rounds }: ManyTargetsInput,
): Promise<ManyTargetsResult> {
  const script = join(scratch, "clients.lua");
  writeFileSync(script, CLIENTS_IN_TURN);
  const load = (sluice: RunningSluice, duration: number) =>
    loadWithWrk(`http://127.0.0.1:${sluice.ports.http}/${FILE}`, duration, { script });
  // Long enough for every client to come.
  for (const sluice of [free, limited])
    for (let seen = 0; seen < CLIENTS * 1.2;) seen += (await load(sluice, 2)).requests;
  const ratios: number[] = [];
  let errors = 0;
  for (let round = 0; round < rounds; round += 1) {
    const costs: number[] = [];
    for (const sluice of [free, limited]) {
      const { pid } = sluice.program;
      const before = processorTimeUs(pid);
      const result = await load(sluice, seconds);
      costs.push((processorTimeUs(pid) - before) / result.requests);
      errors += result.errors;
    }
    const [without = Number.NaN, withLimit = Number.NaN] = costs;
    ratios.push(withLimit / without);
  }
  ratios.sort((a, b) => a - b);
  return { ratio: percentile(ratios, 0.5), errors };
}

const CLIENTS_IN_TURN = `
local client = math.random(0, ${CLIENTS - 1})
request = function()
  client = (client + 1) % ${CLIENTS}
  local address = string.format("10.%d.%d.%d", math.floor(client / 62500), math.floor(client / 250) % 250, client % 250 + 1)
  wrk.headers["X-Forwarded-For"] = address
  return wrk.format()
end
`;
