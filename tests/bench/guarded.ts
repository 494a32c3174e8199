// Measures what a route costs that asks for a key, a group and an id and hardens its answers; knows no other proxy.
import {
  compare,
  type ManyTargetsInput,
  type ManyTargetsResult,
  startWith,
  targetsOf,
} from "./many-targets.ts";
import type { ManagementApi } from "./sluice.ts";

const GROUP = "bench";

/** Two gateways; one of them has key-auth, acl, request-id and security-headers for its route. Both get the same requests. */
export async function measureGuarded(input: ManyTargetsInput): Promise<ManyTargetsResult> {
  const service = { targets: targetsOf(input, 1) };
  const open = await startWith(input, "open", service);
  try {
    const guarded = await startWith(input, "guarded", service);
    try {
      const key = await guard(guarded.api);
      return await compare([open, guarded], input, { wrk: { moreHeaders: { "x-api-key": key } } });
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
