// Measures what a rate limit costs a request while it counts very many clients; knows no other proxy.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import {
  compare,
  type ManyTargetsInput,
  type ManyTargetsResult,
  middlePair,
  startWith,
  targetsOf,
} from "./many-targets.ts";

/** Clients that take turns, so that each of them is counted all the time. */
const CLIENTS = 100_000;

/**
 * Two gateways behind a trusted proxy that names another client with each request; one of them has a sliding limit by address,
 * which the load does not reach.
 */
export const measureLimits = (input: ManyTargetsInput): Promise<ManyTargetsResult> =>
  middlePair((pair) => comparePair(input, pair));

async function comparePair(input: ManyTargetsInput, pair: number): Promise<ManyTargetsResult> {
  const service = { targets: targetsOf(input, 1) };
  const free = await startWith(input, `no-limit-${pair}`, service);
  try {
    const limited = await startWith(input, `limit-${pair}`, service);
    try {
      for (const { api } of [free, limited])
        await api.send("PATCH", "/api/v1/settings", { trusted_proxies: ["127.0.0.1"] });
      const limits = [{ requests: 1_000_000, window: 3600, algorithm: "sliding", key: "ip" }];
      await limited.api.send("POST", "/api/v1/plugins", {
        name: "rate-limit",
        config: { limits },
      });
      const script = join(input.scratch, "clients.lua");
      writeFileSync(script, CLIENTS_IN_TURN);
      // Long enough for every client to come.
      return await compare([free, limited], input, {
        wrk: { script },
        warmUpRequests: CLIENTS * 1.2,
      });
    } finally {
      await limited.program.stop();
    }
  } finally {
    await free.program.stop();
  }
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
