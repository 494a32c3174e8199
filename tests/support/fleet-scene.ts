// A fleet of compiled nodes over a PostgreSQL of its own, with the headers of its replies.
import { randomBytes } from "node:crypto";
import { type Gateway, type GatewayOptions, startGateway } from "./gateway.ts";
import { Postgres } from "./postgres.ts";
import { executable } from "./variants.ts";

export interface FleetScene {
  readonly postgres: Postgres;
  /** n1, n2, … */
  readonly nodes: readonly Gateway[];
  stop(): Promise<void>;
}

/**
 * The configuration has no listener: all nodes are on one machine, and could not share its ports. `options` for all of them, or
 * by their number.
 */
export async function startFleet(
  count: number,
  options: (number: number) => GatewayOptions = () => ({}),
): Promise<FleetScene> {
  const postgres = await Postgres.create();
  const secret = randomBytes(32).toString("base64");
  const nodes: Gateway[] = [];
  const stop = async () => {
    for (const node of nodes.toReversed()) await node.stop();
    await postgres.stop();
  };
  try {
    for (let number = 1; number <= count; number++) {
      const own = options(number);
      const node = await startGateway({
        binary: executable,
        workers: 1,
        ...own,
        env: { SLUICE_SECRET_KEY: secret, ...own.env },
        args: ["--store", postgres.url, "--node-name", `n${number}`],
      });
      nodes.push(node);
      if (number > 1) continue;
      for (const name of ["http", "https"]) await node.ok("DELETE", `/api/v1/listeners/${name}`);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { postgres, nodes, stop };
}
