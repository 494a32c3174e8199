// Measures what a route costs that asks for a key, a group and an id and hardens its answers; knows no other proxy.
import { loadWithWrk, percentile } from "./load.ts";
import {
  type ManyTargetsInput,
  type ManyTargetsResult,
  startWith,
  targetsOf,
} from "./many-targets.ts";
import { processorTimeUs } from "./processes.ts";
import type { ManagementApi, RunningSluice } from "./sluice.ts";

const FILE = "64B";
const GROUP = "bench";

/** Two gateways; one of them has key-auth, acl, request-id and security-headers for its route. Both get the same requests. */
export async function measureGuarded(input: ManyTargetsInput): Promise<ManyTargetsResult> {
  const service = { targets: targetsOf(input, 1) };
  const open = await startWith(input, "open", service);
  try {
    const guarded = await startWith(input, "guarded", service);
    try {
      return await compare([open, guarded], await guard(guarded.api), input);
    } finally {
      await guarded.program.stop();
    }
  } finally {
    await open.program.stop();
  }
}

/** Returns a key that opens the route. */
async function guard(api: ManagementApi): Promise<string> {
  await api.send("POST", "/api/v1/consumers", { username: "bench", groups: [GROUP] });
  const made = await api.send<{ secret: string }>("POST", "/api/v1/consumers/bench/credentials", {
    type: "key",
  });
  const plugins = [
    { name: "key-auth" },
    { name: "acl", config: { allow: [GROUP] } },
    { name: "request-id" },
    { name: "security-headers" },
  ];
  for (const plugin of plugins) await api.send("POST", "/api/v1/plugins", plugin);
  return made.secret;
}

async function compare(
  both: readonly [RunningSluice, RunningSluice],
  key: string,
  { seconds, rounds }: ManyTargetsInput,
): Promise<ManyTargetsResult> {
  const headers = { "x-api-key": key };
  const load = ({ ports }: RunningSluice, duration: number) =>
    loadWithWrk(`http://127.0.0.1:${ports.http}/${FILE}`, duration, { moreHeaders: headers });
  for (const sluice of both) await load(sluice, 5);
  const ratios: number[] = [];
  let errors = 0;
  for (let round = 0; round < rounds; round += 1) {
    const costs: number[] = [];
    for (const sluice of both) {
      const before = processorTimeUs(sluice.program.pid);
      const result = await load(sluice, seconds);
      costs.push((processorTimeUs(sluice.program.pid) - before) / result.requests);
      errors += result.errors;
    }
    const [without = Number.NaN, withPlugins = Number.NaN] = costs;
    ratios.push(withPlugins / without);
  }
  ratios.sort((a, b) => a - b);
  return { ratio: percentile(ratios, 0.5), errors };
}
