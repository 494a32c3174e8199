// A fleet of compiled nodes over a PostgreSQL server of its own, and what tests ask of its nodes.
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, startGateway } from "./gateway.ts";
import { startLastingOrigin } from "./lasting-clients.ts";
import { NodeNetwork } from "./node-network.ts";
import { eventually } from "./poll.ts";
import { Postgres } from "./postgres.ts";
import { patient } from "./redis.ts";
import { executable } from "./executable.ts";
import { Wire } from "./wire.ts";

export interface NodeOptions {
  /** Default n1, n2, … */
  readonly name?: string;
  /** Read at each start. */
  readonly env?: Record<string, string>;
  /** The address of the database; default: its own. */
  readonly url?: string;
  readonly args?: readonly string[];
  readonly dataDir?: string;
  readonly binary?: string;
}

export interface FleetOptions {
  /** An existing one, which `stop` stops as well. */
  readonly postgres?: Postgres;
  /** Of each node. Default 1. */
  readonly workers?: number;
  /** Each node reaches the database by a wire of its own. */
  readonly wired?: boolean;
  /** Each node has a network of its own, where it listens on port 8080; implies `wired`. */
  readonly networks?: boolean;
  /** Where nodes have the secret key. Default: in the variable. */
  readonly keyIn?: "file" | "variable";
  /** Starts the server of shared counters, which nodes reach at `hostname`; its URL. */
  readonly counters?: (hostname: string) => Promise<string>;
  /** For each node. */
  readonly node?: (name: string) => NodeOptions;
}

/** A reply of the management API to a change. */
export interface Reply {
  readonly status: number;
  /** `3/3`. */
  readonly nodes: string | null;
  /** `n2;lagging`. */
  readonly missing: string | null;
  readonly text: string;
  readonly ms: number;
}

export const newKey = (): string => randomBytes(32).toString("base64");

export class TestFleet {
  readonly postgres: Postgres;
  readonly secret = newKey();
  readonly nodes: Gateway[] = [];
  /** Of the node of the same index. */
  readonly wires: Wire[] = [];
  /** Addresses of the nodes; empty without networks of their own. */
  readonly addresses: string[] = [];
  /** Words that start a program in the network of a node; empty as well. */
  readonly wraps: string[][] = [];
  readonly #options: FleetOptions;
  readonly #directories: string[] = [];
  readonly #origins: ReturnType<typeof startLastingOrigin>[] = [];
  #network: NodeNetwork | null = null;
  #counters: string[] = [];

  private constructor(postgres: Postgres, options: FleetOptions) {
    this.postgres = postgres;
    this.#options = options;
  }

  /** Nodes n1, n2, … Without networks of their own they have no listener: they could not share its port. */
  static async start(count: number, options: FleetOptions = {}): Promise<TestFleet> {
    const fleet = new TestFleet(options.postgres ?? (await Postgres.create()), options);
    try {
      if (options.networks === true) fleet.#network = NodeNetwork.create();
      if (options.counters !== undefined)
        fleet.#counters = ["--counters", patient(await options.counters(fleet.hostname))];
      const first = await fleet.add();
      if (fleet.#network === null)
        for (const name of ["http", "https"]) await first.ok("DELETE", `/api/v1/listeners/${name}`);
      // One after the other: two first nodes cannot found a fleet at the same time.
      for (let index = 1; index < count; index++) await fleet.add();
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  /** The address of the tests, as nodes reach it. */
  get hostname(): string {
    return this.#network?.hostname ?? "127.0.0.1";
  }

  async add(given: NodeOptions = {}): Promise<Gateway> {
    const name = given.name ?? `n${this.nodes.length + 1}`;
    const node: NodeOptions = { ...this.#options.node?.(name), ...given };
    const { env = {}, args = [], ...options } = node;
    const isInFile = this.#options.keyIn === "file";
    const dataDir = options.dataDir ?? (isInFile ? this.#directoryWithKey() : undefined);
    const place = this.#network?.add();
    const url = options.url ?? (await this.#urlOfNext());
    if (!isInFile) env["SLUICE_SECRET_KEY"] = this.secret;
    const gateway = await startGateway({
      binary: options.binary ?? executable,
      workers: this.#options.workers ?? 1,
      env,
      args: [
        ...["--store", url, "--node-name", name, ...this.#counters],
        ...[...this.#listeners(place?.address), ...args],
      ],
      ...(dataDir === undefined ? {} : { dataDir }),
      ...(place === undefined ? {} : { wrap: place.wrap }),
    });
    this.nodes.push(gateway);
    if (place !== undefined) {
      this.addresses.push(place.address);
      this.wraps.push(place.wrap);
    }
    return gateway;
  }

  /** An empty data directory with the key of the first node. */
  #directoryWithKey(): string {
    const directory = mkdtempSync(join(tmpdir(), "sluice-fleet-"));
    this.#directories.push(directory);
    const [first] = this.nodes;
    const key =
      first === undefined
        ? Buffer.from(this.secret, "base64")
        : readFileSync(join(first.dataDir, "secret.key"));
    writeFileSync(join(directory, "secret.key"), key, { mode: 0o600 });
    return directory;
  }

  /** A network for one more program; requires networks. */
  addNetwork(): { readonly address: string; readonly wrap: string[] } {
    if (this.#network === null) throw new Error("the nodes have no networks of their own");
    return this.#network.add();
  }

  #listeners(address: string | undefined): string[] {
    if (address === undefined) return [];
    const remote = ["--admin-allow", this.#network?.cidr ?? "", "--allow-unauthenticated-remote"];
    const listeners = ["--http", "0.0.0.0:8080", "--https", "0.0.0.0:8443"];
    const advertised = ["--advertise", `http://${address}:9080`];
    return ["--admin", `${address}:9080`, ...advertised, ...remote, ...listeners];
  }

  async #urlOfNext(): Promise<string> {
    if (this.#options.wired !== true && this.#network === null) return this.postgres.url;
    const wire = await Wire.open({ target: this.postgres.port, hostname: this.hostname });
    this.wires.push(wire);
    return this.postgres.urlAt(wire.port, this.hostname);
  }

  /** Starts a site behind all nodes, on the host of the tests; its origin. */
  async createSite(): Promise<ReturnType<typeof startLastingOrigin>> {
    const origin = startLastingOrigin(this.hostname);
    this.#origins.push(origin);
    const [first] = this.nodes as [Gateway];
    const targets = [{ host: this.hostname, port: origin.port }];
    // On a busy machine the database is silent for moments: then nothing was changed.
    const create = async (kind: string, body: object) => {
      const { status, text } = await eventually(async () => {
        const reply = await send(first, "POST", [`/api/v1/${kind}`, body]);
        return reply.status === 503 ? null : reply;
      });
      if (status !== 200) throw new Error(`POST of ${kind}: ${status} ${text}`);
    };
    await create("services", { name: "site", targets });
    await create("routes", { name: "site", service_id: "site" });
    return origin;
  }

  /**
   * A service that runs behind the listener of n3, which n2 cannot reach, with checks each second: the nodes see its target
   * differently. Requires three networks, and a route for all requests. `headers`: of an admin.
   */
  async createSplitService(name: string, headers: Record<string, string> = {}): Promise<void> {
    const [first] = this.nodes as [Gateway];
    const host = this.addresses[2] ?? "";
    const unreachable = ["ip", "route", "add", "unreachable", `${host}/32`];
    if (Bun.spawnSync([...(this.wraps[1] ?? []), ...unreachable]).exitCode !== 0)
      throw new Error("the route could not be added");
    const quick = { interval: 1, unhealthy_interval: 1, healthy_threshold: 1 };
    const active = { ...quick, enabled: true, unhealthy_threshold: 1 };
    const body = { name, targets: [{ host, port: 8080 }], health: { active } };
    const { status } = await first.api("POST", "/api/v1/services", body, headers);
    if (status !== 200) throw new Error(`the service could not be created: ${status}`);
  }

  /** A connection to the database, past all gateways. */
  async query<T>(ask: (sql: Bun.SQL) => PromiseLike<T>): Promise<T> {
    const sql = this.postgres.connect();
    try {
      return await ask(sql);
    } finally {
      await sql.close({ timeout: 0 });
    }
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) {
      // One that is stopped would not see its end.
      node.signal("SIGCONT");
      await node.kill9();
      await node.stop();
    }
    for (const origin of this.#origins) await origin.stop(true);
    for (const wire of this.wires) await wire.close();
    await this.postgres.stop();
    for (const directory of this.#directories) rmSync(directory, { recursive: true, force: true });
    this.#network?.remove();
  }
}

export async function send(
  node: Gateway,
  method: string,
  [path, body]: readonly [path: string, body?: unknown],
): Promise<Reply> {
  const begun = performance.now();
  const response = await node.api(method, path, body);
  const text = await response.text();
  const ms = performance.now() - begun;
  const { headers, status } = response;
  const [nodes, missing] = ["sluice-nodes", "sluice-nodes-missing"].map((name) =>
    headers.get(name),
  );
  return { status, nodes: nodes ?? null, missing: missing ?? null, text, ms };
}

export const create = (node: Gateway, name: string): Promise<Reply> =>
  send(node, "POST", ["/api/v1/services", { name }]);

export const namesOn = async (node: Gateway): Promise<string[]> =>
  (await node.ok("GET", "/api/v1/services")).map(({ name }: { name: string }) => name);

/** What a node says of all nodes: `n2 away`. */
export const statesOn = async (node: Gateway): Promise<string[]> =>
  (await node.ok("GET", "/api/v1/nodes")).map(
    ({ name, state }: { name: string; state: string }) => `${name} ${state}`,
  );

export const isServing = (state: string): boolean => state.endsWith(" serving");

export interface SettledOptions {
  /** Whether histories are equal as well: not after a node has taken the state of another one as a whole. Default true. */
  readonly history?: boolean;
}

/** All that nodes must have in common: configuration and history. */
async function stateOf(node: Gateway, history: boolean): Promise<string> {
  const exported = await node.ok("GET", "/api/v1/export");
  // The time at which it was made, and what it was made by.
  for (const field of ["exported_at", "program"]) delete exported[field];
  const all: { number: number }[] = await node.ok("GET", "/api/v1/revisions");
  const revisions = history ? all : Math.max(...all.map(({ number }) => number));
  return JSON.stringify({ exported, revisions });
}

/** Waits until all nodes serve all changes, and returns the names of their services; throws when their states differ. */
export async function settled(
  nodes: readonly Gateway[],
  { history = true }: SettledOptions = {},
): Promise<string[]> {
  const [first] = nodes;
  if (first === undefined) return [];
  await eventually(
    async () => {
      const states = await Promise.all(nodes.map((node) => stateOf(node, history)));
      const differing = states.findIndex((state) => state !== states[0]);
      if (differing === -1) return true;
      throw new Error(differenceOf(states[0] ?? "", states[differing] ?? ""));
    },
    { intervalMs: 50 },
  );
  return await namesOn(first);
}

function differenceOf(one: string, other: string): string {
  const at = [...one].findIndex((character, index) => character !== other[index]);
  const around = (text: string) => text.slice(Math.max(0, at - 100), at + 200);
  return `the states of two nodes differ:\n${around(one)}\n${around(other)}`;
}
