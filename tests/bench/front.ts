// Measures what a request costs more through a listener that runs behind a front; knows no other proxy.
import {
  compare,
  type ManyTargetsInput,
  type ManyTargetsResult,
  startWith,
  targetsOf,
} from "./many-targets.ts";

/** More connections than the load opens: the limit is active, and refuses none. */
const NO_REAL_LIMIT = 1_000_000;

/** Two gateways that differ only in a limit on connections, which a direct listener could not hold. */
export async function measureFront(input: ManyTargetsInput): Promise<ManyTargetsResult> {
  const service = { targets: targetsOf(input, 1) };
  const direct = await startWith(input, "direct", service);
  try {
    const fronted = await startWith(input, "fronted", service);
    try {
      const limit = { max_connections: NO_REAL_LIMIT };
      await fronted.api.send("PATCH", "/api/v1/listeners/http", limit);
      return await compare([direct, fronted], input);
    } finally {
      await fronted.program.stop();
    }
  } finally {
    await direct.program.stop();
  }
}
