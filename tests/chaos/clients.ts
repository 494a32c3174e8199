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

/** Whether a route is there at the end: not known while a change was not answered. */
export type Expected = "present" | "absent" | "either";

export interface Client {
  stop(): Promise<void>;
}

/** Paths of nobody else, which only a route of this name matches. */
const pathOf = (name: string) => `/c/${name}`;

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
  readonly expected = new Map<string, Expected>();
  readonly #scene: Scene;
  readonly #writers: Promise<void>[];
  readonly #checks = new Set<Promise<void>>();
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

  async #write(node: Gateway, index: number, random: Random): Promise<void> {
    /** Routes of which all is known, and that no check is about. */
    const idle: string[] = [];
    for (let round = 0; !this.#isOver; round++) {
      const isDelete = idle.length > 0 && random.chance(0.45);
      const name = isDelete
        ? (idle.splice(random.between(0, idle.length), 1)[0] ?? "")
        : `w${index + 1}-${round}`;
      const outcome = await this.#change(node, name, isDelete);
      if (outcome !== null && outcome.wanted === "present") {
        void outcome.check.then(() => idle.push(name));
      }
      await Bun.sleep(outcome === null ? 100 : random.between(20, 60));
    }
  }

  /** Null: it was not acknowledged. */
  async #change(node: Gateway, name: string, isDelete: boolean) {
    const { history, fleet } = this.#scene;
    const { counts } = history;
    const begun = performance.now();
    const body = { name, service_id: "site", paths: [pathOf(name)] };
    const before = this.expected.get(name) ?? "absent";
    // What breaks in between leaves it so.
    this.expected.set(name, "either");
    const reply = isDelete
      ? await attempt(node, "DELETE", `/api/v1/routes/${name}`)
      : await attempt(node, "POST", "/api/v1/routes", body);
    if (reply === null || reply.status === 504) {
      counts.unanswered++;
      return null;
    }
    if (reply.status !== 200) {
      counts.refused++;
      this.expected.set(name, before);
      const isRefusal =
        reply.status === 503 ||
        (reply.status !== 500 && /nothing was changed|an upgrade is in progress/.test(reply.text));
      if (!isRefusal)
        history.breaks(`${isDelete ? "DELETE" : "POST"} of ${name}: ${reply.status} ${reply.text}`);
      return null;
    }
    counts.acknowledged++;
    const { length } = fleet.nodes;
    if (reply.nodes === `${length}/${length}`) history.wholeAt = begun;
    const wanted: Expected = isDelete ? "absent" : "present";
    this.expected.set(name, wanted);
    const check = this.#verify(name, isDelete ? 404 : 200, reply);
    this.#checks.add(check);
    void check.then(() => this.#checks.delete(check));
    return { wanted, check };
  }

  /** Asks each node that a reply counted, at once. */
  async #verify(name: string, status: number, reply: Reply): Promise<void> {
    const { history, fleet } = this.#scene;
    const since = performance.now();
    const [live = 0] = (reply.nodes ?? "").split("/").map(Number);
    const missing = (reply.missing ?? "").split(",").map((one) => one.trim().split(";")[0]);
    const asked = fleet.addresses
      .map((address, index) => ({ address, index, name: `n${index + 1}` }))
      .filter((node) => !missing.includes(node.name) && reply.nodes !== null);
    const found = await Promise.all(
      asked.map(async ({ address, index, name: node }) => {
        const got = await ask(address, pathOf(name));
        // It may have been down, or another process speaks for it.
        if (got === status || history.isExcused(index, since)) return null;
        return `${node} responds with ${got}`;
      }),
    );
    history.counts.verified++;
    const wrong = found.filter((one) => one !== null);
    // A node that stops has left: it is neither counted nor missing.
    if (wrong.length <= Math.max(0, asked.length - live)) return;
    history.counts.lies++;
    history.breaks(
      `reply ${reply.nodes} (missing ${reply.missing}) for ${name}, status ${status} expected: ${wrong.join(", ")}`,
    );
  }
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
    const sql = scene.database.connect();
    try {
      const [row] = await sql`select epoch::float8, holder::text from sluice.lease`;
      if (row === undefined) return;
      const { epoch, holder } = row as { epoch: number; holder: string };
      const known = holders.get(epoch);
      if (known !== undefined && known !== holder)
        history.breaks(`epoch ${epoch} of the lease has two holders: ${known} and ${holder}`);
      const last = Math.max(0, ...holders.keys());
      if (epoch < last) history.breaks(`the epoch of the lease fell from ${last} to ${epoch}`);
      holders.set(epoch, holder);
      history.counts.epochs = holders.size;
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

/** What is there at the end, at the API of one node and at the listener of each. */
export async function checkRoutes(scene: Scene, { expected }: Writers): Promise<void> {
  const { fleet, history } = scene;
  const [first] = fleet.nodes;
  if (first === undefined) return;
  const routes: { name: string }[] = await first.ok("GET", "/api/v1/routes");
  const there = new Set(routes.map(({ name }) => name));
  for (const [name, wanted] of expected) {
    const found: Expected = there.has(name) ? "present" : "absent";
    if (wanted !== "either" && wanted !== found) {
      history.counts.lost++;
      history.breaks(`${name} should be ${wanted} and is ${found}`);
    }
    const status = there.has(name) ? 200 : 404;
    const got = await Promise.all(fleet.addresses.map((address) => ask(address, pathOf(name))));
    if (got.some((one) => one !== status))
      history.breaks(`${name} is ${found} in the API, and listeners respond with ${got.join()}`);
  }
}
