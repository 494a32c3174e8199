// Those who use the fleet of a run of chaos: writers of routes, clients of each listener, and one who watches the lease.
import type { Gateway } from "../support/gateway.ts";
import { type Reply, send } from "../support/fleet.ts";
import { Random } from "../support/random.ts";
import type { Scene } from "./faults.ts";

const PORT = 8080;
/** So that a response that never comes ends the run; a busy machine does not reach it. */
const PATIENCE_MS = 60_000;

/** A writer gets no shorter time: a node that is stopped responds when it goes on. */
const attempt = (node: Gateway, method: string, path: string, body?: unknown) =>
  send(node, method, [path, body]).catch(() => null);

/** What a route may be at the end: its paths, null: it is not there. Several, while a change was not answered. */
type Possible = readonly (string | null)[];

export interface Client {
  stop(): Promise<void>;
}

/** Of nobody else: only a route of this name matches it, as it was after so many changes. */
const pathOf = (name: string, version: number) => `/c/${name}/v${version}`;

interface Change {
  readonly method: "POST" | "PATCH" | "DELETE";
  readonly name: string;
  /** What it makes of the route. */
  readonly path: string | null;
}

/** What the listener of a node responds; null: nothing. */
async function ask(address: string, path: string): Promise<number | null> {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(`http://${address}:${PORT}${path}`, { signal, keepalive: false });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return null;
  }
}

export class Writers {
  /** By name of the route. */
  readonly #expected = new Map<string, Possible>();
  readonly #scene: Scene;
  readonly #writers: Promise<void>[];
  readonly #checks = new Set<Promise<void>>();
  /** Names of routes that were changed since the database is of the past; null: it is not. */
  #rewound: Set<string> | null = null;
  /** Names of routes that were changed since the last decision, and of those that are being changed. */
  readonly #touched = new Set<string>();
  readonly #busy = new Set<string>();
  #isOver = false;

  constructor(scene: Scene, seed: number) {
    this.#scene = scene;
    this.#writers = scene.fleet.nodes.map((node, index) =>
      this.#write(node, index, new Random(seed * 31 + index)),
    );
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#writers);
    await Promise.all(this.#checks);
  }

  /** What is acknowledged from now on may be lost, until `decided`. */
  rewind(): void {
    this.#rewound ??= new Set();
  }

  /** All nodes have one state again, and that is what is right. */
  async decided(): Promise<void> {
    const [first] = this.#scene.fleet.nodes;
    const names = this.#rewound;
    if (names === null || first === undefined) return;
    this.#rewound = null;
    this.#touched.clear();
    for (const name of this.#busy) this.#touched.add(name);
    const there = await routesOf(first);
    for (const name of names) {
      const may = this.#expected.get(name) ?? [];
      const found = there.get(name) ?? null;
      if (!this.#touched.has(name) && may.includes(found)) this.#expected.set(name, [found]);
    }
  }

  async #write(node: Gateway, index: number, random: Random): Promise<void> {
    /** Versions of routes of which all is known, and that no check is about. */
    const idle = new Map<string, number>();
    for (let round = 0; !this.#isOver; round++) {
      const [name, version] = random.chance(0.6) ? this.#taken(idle, random) : [null, 0];
      const method = name === null ? "POST" : random.pick(["PATCH", "DELETE"] as const);
      const next = name ?? `w${index + 1}-${round}`;
      const path = method === "DELETE" ? null : pathOf(next, version + 1);
      const made = await this.#change(node, { method, name: next, path });
      if (made !== null && path !== null) void made.check.then(() => idle.set(next, version + 1));
      await Bun.sleep(made === null ? 100 : random.between(20, 60));
    }
  }

  #taken(idle: Map<string, number>, random: Random): [name: string | null, version: number] {
    const [name, version = 0] = [...idle][random.between(0, Math.max(1, idle.size))] ?? [null];
    if (name !== null) idle.delete(name);
    return [name, version];
  }

  /** Null: it was not acknowledged. */
  async #change(node: Gateway, change: Change) {
    const { history, fleet } = this.#scene;
    const { counts } = history;
    const { method, name, path } = change;
    const begun = performance.now();
    const before = this.#expected.get(name) ?? [null];
    // What breaks in between leaves it so.
    this.#expected.set(name, [...new Set([...before, path])]);
    this.#rewound?.add(name);
    this.#touched.add(name);
    this.#busy.add(name);
    const url = method === "POST" ? "/api/v1/routes" : `/api/v1/routes/${name}`;
    const body = { POST: { name, service_id: "site", paths: [path] }, PATCH: { paths: [path] } };
    const reply = await attempt(node, method, url, method === "DELETE" ? undefined : body[method]);
    this.#rewound?.add(name);
    this.#busy.delete(name);
    if (reply === null || reply.status === 504) {
      counts.unanswered++;
      return null;
    }
    if (reply.status !== 200) {
      counts.refused++;
      this.#expected.set(name, before);
      // It was lost with the past of the database, and its writer does not know.
      const isLost = reply.status === 404 && before.includes(null);
      const isRefusal =
        isLost ||
        reply.status === 503 ||
        (reply.status !== 500 && /nothing was changed|an upgrade is in progress/.test(reply.text));
      if (!isRefusal && !history.isRewound(begun))
        history.breaks(`${method} of ${name}: ${reply.status} ${reply.text}`);
      return null;
    }
    counts.acknowledged++;
    const { length } = fleet.nodes;
    if (reply.nodes === `${length}/${length}`) history.wholeAt = begun;
    this.#expected.set(name, this.#rewound === null ? [path] : [...new Set([...before, path])]);
    const gone = before.find((one) => one !== null) ?? pathOf(name, 0);
    const check = this.#verify([path ?? gone, path === null ? 404 : 200], reply);
    this.#checks.add(check);
    void check.then(() => this.#checks.delete(check));
    return { check };
  }

  /** Asks each node that a reply counted, at once. */
  async #verify([path, status]: readonly [path: string, status: number], reply: Reply) {
    const { history, fleet } = this.#scene;
    const since = performance.now();
    const [live = 0] = (reply.nodes ?? "").split("/").map(Number);
    const missing = (reply.missing ?? "").split(",").map((one) => one.trim().split(";")[0]);
    const asked = fleet.addresses
      .map((address, index) => ({ address, index, name: `n${index + 1}` }))
      .filter((node) => !missing.includes(node.name) && reply.nodes !== null);
    const found = await Promise.all(
      asked.map(async ({ address, index, name: node }) => {
        const got = await ask(address, path);
        // It may have been down, or another process speaks for it.
        if (got === status || history.isExcused(index, since)) return null;
        return `${node} responds with ${got}`;
      }),
    );
    history.counts.verified++;
    const wrong = found.filter((one) => one !== null);
    // A node that stops has left: it is neither counted nor missing.
    if (wrong.length <= Math.max(0, asked.length - live) || history.isRewound(since)) return;
    history.counts.lies++;
    history.breaks(
      `reply ${reply.nodes} (missing ${reply.missing}) for ${path}, status ${status} expected: ${wrong.join(", ")}`,
    );
  }

  /** What is there at the end, at the API of one node and at the listener of each. */
  async checkRoutes(): Promise<void> {
    const { fleet, history } = this.#scene;
    const [first] = fleet.nodes;
    if (first === undefined) return;
    const there = await routesOf(first);
    for (const [name, may] of this.#expected) {
      const found = there.get(name) ?? null;
      if (!may.includes(found)) {
        history.counts.lost++;
        history.breaks(`${name} should be ${may.join(" or ")} and is ${found}`);
      }
      const path = found ?? may.find((one) => one !== null) ?? pathOf(name, 1);
      const status = found === null ? 404 : 200;
      const got = await Promise.all(fleet.addresses.map((address) => ask(address, path)));
      if (got.some((one) => one !== status))
        history.breaks(`${name} is ${found} in the API, and listeners respond with ${got.join()}`);
    }
  }
}

/** The path of each route. */
async function routesOf(node: Gateway): Promise<ReadonlyMap<string, string>> {
  const routes: { name: string; paths: { value: string }[] }[] = await node.ok(
    "GET",
    "/api/v1/routes",
  );
  return new Map(routes.map(({ name, paths }) => [name, paths[0]?.value ?? ""]));
}

/** A client of each node's listener, of which no request may fail. */
export function startClients({ fleet, history }: Scene): Client {
  const { counts } = history;
  const state = { isOver: false };
  const request = async (address: string, index: number) => {
    while (!state.isOver) {
      const since = performance.now();
      const got = await ask(address, "/site");
      counts.requests++;
      if (got !== 200) {
        if (history.isExcused(index, since)) counts.excused_requests++;
        else {
          counts.failed_requests++;
          const ms = Math.round(performance.now() - since);
          history.breaks(`request at n${index + 1} failed: ${got} after ${ms} ms`);
        }
      }
      await Bun.sleep(20);
    }
  };
  const clients = fleet.addresses.map(request);
  return {
    stop: async () => {
      state.isOver = true;
      await Promise.all(clients);
    },
  };
}

/** Epochs grow, and each has one holder. */
export function watchLease(scene: Scene): Client {
  const { history } = scene;
  const state = { isOver: false };
  const holders = new Map<number, string>();
  const look = async () => {
    const since = performance.now();
    const sql = scene.database.connect();
    try {
      const [row] = await sql`select epoch::float8, holder::text from sluice.lease`;
      if (row === undefined) return;
      const { epoch, holder } = row as { epoch: number; holder: string };
      // With the database its epochs go back.
      if (history.isRewound(since)) return holders.clear();
      const known = holders.get(epoch);
      if (known !== undefined && known !== holder)
        history.breaks(`epoch ${epoch} of the lease has two holders: ${known} and ${holder}`);
      const last = Math.max(0, ...holders.keys());
      if (epoch < last) history.breaks(`the epoch of the lease fell from ${last} to ${epoch}`);
      holders.set(epoch, holder);
      history.counts.epochs = Math.max(history.counts.epochs, holders.size);
    } catch {
      // The database is away.
    } finally {
      await sql.close({ timeout: 0 }).catch(() => undefined);
    }
  };
  const watching = (async () => {
    while (!state.isOver) {
      await look();
      await Bun.sleep(200);
    }
  })();
  return {
    stop: async () => {
      state.isOver = true;
      await watching;
    },
  };
}
