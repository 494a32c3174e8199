// Two compiled nodes with one configuration over a real PostgreSQL: live before the reply, and what faults of either look like.
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";

import { lacksPostgres, Postgres } from "../support/postgres.ts";
import { executable } from "../support/variants.ts";

const { afterEach, test } = needs("executable", { lacks: lacksPostgres() });

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const key = () => randomBytes(32).toString("base64");

async function database(): Promise<Postgres> {
  const postgres = await Postgres.create();
  cleanups.push(() => postgres.stop());
  return postgres;
}

interface NodeOptions {
  readonly postgres: Postgres;
  readonly secret: string;
  readonly name: string;
}

async function startNode({ postgres, secret, name }: NodeOptions): Promise<Gateway> {
  const gateway = await startGateway({
    binary: executable,
    workers: 1,
    env: { SLUICE_SECRET_KEY: secret },
    args: ["--store", postgres.url, "--node-name", name],
  });
  cleanups.push(() => gateway.stop());
  return gateway;
}

/** Nodes n1, n2, … The configuration has no listener: all nodes are on one machine, and could not share its ports. */
async function startFleet(count: number) {
  const [postgres, secret] = [await database(), key()];
  const first = await startNode({ postgres, secret, name: "n1" });
  for (const name of ["http", "https"]) await first.ok("DELETE", `/api/v1/listeners/${name}`);
  const nodes = [first];
  for (let index = 2; index <= count; index++)
    nodes.push(await startNode({ postgres, secret, name: `n${index}` }));
  return { postgres, secret, nodes };
}

async function create(node: Gateway, name: string) {
  const response = await node.api("POST", "/api/v1/services", { name });
  const { headers, status } = response;
  return {
    status,
    nodes: headers.get("sluice-nodes"),
    missing: headers.get("sluice-nodes-missing"),
    text: await response.text(),
  };
}

const namesOn = async (node: Gateway): Promise<string[]> =>
  (await node.ok("GET", "/api/v1/services")).map(({ name }: { name: string }) => name);

test("a change is live on all nodes before the reply, whichever node it is sent to", async () => {
  const { nodes } = await startFleet(3);
  const names: string[] = [];
  for (let round = 0; round < 30; round++) {
    const name = `s${round}`;
    names.push(name);
    const { status, nodes: live } = await create(nodes[round % 3]!, name);
    expect([status, live]).toEqual([200, "3/3"]);
    for (const node of nodes) expect(await namesOn(node)).toEqual(names);
  }
  const revisions = await Promise.all(
    nodes.map(async (node) => (await node.ok("GET", "/api/v1/revisions"))[0]),
  );
  expect(revisions[1]).toEqual(revisions[0]);
  expect(revisions[2]).toEqual(revisions[0]);
}, 60_000);
