// `fleet adopt`: shows what the database and the nodes of a fleet have, asks which state is right, and makes it that of all nodes.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SecretBox } from "../crypto/secret-box.ts";
import { decide, readDatabase, type Situation, situationOf } from "../fleet/adopt.ts";
import { EntryCodec } from "../fleet/entry.ts";
import { isNewer, SIGNING } from "../fleet/join.ts";
import { FleetError } from "../fleet/postgres-connection.ts";
import type { PostgresSource } from "../fleet/postgres-source.ts";
import type { StoredNode } from "../fleet/whole.ts";
import { createLog } from "../log.ts";
import {
  collectionNames,
  type GatewayConfig,
  singletonNames,
  wholeOf,
} from "../model/gateway-config.ts";
import { differenceOf } from "../model/undo.ts";
import { backUp } from "../store/backup.ts";
import { DATABASE } from "../store/open-database.ts";
import { KEY_VARIABLE, readSecretKey } from "../store/secret-key.ts";
import { Store } from "../store/store.ts";
import type { CommandContext } from "./command.ts";
import { stateOf, table } from "./fleet-table.ts";
import type { Flags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

interface Call extends CommandContext {
  readonly given: Flags;
  readonly dataDir: string;
}

const log = createLog({
  level: "error",
  format: "text",
  sink: (line) => void process.stderr.write(line),
});

/** What a store held. */
interface Held extends StoredNode {
  readonly id: string;
}

interface Found {
  readonly own: Held;
  /** Whether the database lacks what it has. */
  readonly isAhead: boolean;
  /** The reason, where the database holds no state that could be taken. */
  readonly database: Held | Error;
  readonly codec: EntryCodec;
  readonly situation: Situation;
}

export async function adoptState(call: Call, source: PostgresSource): Promise<void> {
  const { given, print } = call;
  await source.open();
  const found = await look(call, source);
  print(described(found));
  if (isAgreed(found)) return print(AGREED);
  const choice = given.get("from") ?? ask("Which is right for all nodes, this-node or store?");
  if (choice !== "this-node" && choice !== "store")
    throw new UsageError("adopt needs --from this-node or --from store");
  stateOfChoice(found, choice);
  if (!given.has("yes") && ask(`${consequences[choice]} Type yes to go on:`) !== "yes")
    throw new FleetError("nothing was changed; --yes confirms without a question");
  const summary = `take the state of ${choice === "store" ? "the fleet's database" : "one node"}`;
  // Nodes that agree with the database go on meanwhile.
  const decided = await alone(source, async () => {
    const now = await look(call, source);
    if (isAgreed(now)) return null;
    const { own, codec, situation } = now;
    const store = stateOfChoice(now, choice);
    return await decide({ source, codec, node: own.id, summary, store }, situation);
  });
  if (decided === null) return print(AGREED);
  print(
    `Decided, as entry ${decided.position}: nodes that run take it within seconds, others when they start. A node that gives something up\n` +
      "keeps a copy of what it had in the folder backups of its data directory.\n",
  );
}

const AGREED = "All that is known agrees: nothing to decide, and nothing was changed.\n";

/** A decision then would only take back what nodes have stored since. */
const isAgreed = ({ isAhead, situation }: Found): boolean =>
  !isAhead && !situation.nodes.some((node) => stateOf(node) === "diverged");

function stateOfChoice({ own, isAhead, database }: Found, choice: "this-node" | "store"): Held {
  if (choice === "this-node" && !isAhead)
    throw new FleetError(
      "this node has nothing that the database lacks: run this on a node that is diverged, or choose store; nothing was changed",
    );
  const chosen = choice === "store" ? database : own;
  if (chosen instanceof Error) throw chosen;
  return chosen;
}

/** So long no node can append an entry, and so long another one may be waited for. */
const TURN_MS = 30_000;
const PAUSE_MS = 50;

/** The log does not go on while `work` runs. */
async function alone<T>(source: PostgresSource, work: () => Promise<T>): Promise<T> {
  const holder = Bun.randomUUIDv7();
  const end = performance.now() + TURN_MS;
  while (!(await source.reserve(holder, TURN_MS))) {
    if (performance.now() > end)
      throw new FleetError("another node keeps the log of the fleet busy; nothing was changed");
    await Bun.sleep(PAUSE_MS);
  }
  try {
    return await work();
  } finally {
    await source.reserve(holder, 0).catch(() => false);
  }
}

/** Reads a copy of the data directory, so that its gateway may run; nothing is left behind when this resolves. */
async function look(call: Call, source: PostgresSource): Promise<Found> {
  const scratch = mkdtempSync(join(tmpdir(), "sluice-adopt-"));
  const stores: Store[] = [];
  const open = (name: string): Store => {
    const store = Store.open({ dataDir: join(scratch, name), log });
    stores.push(store);
    return store;
  };
  try {
    mkdirSync(join(scratch, "own"), { mode: 0o700 });
    backUp({ dataDir: call.dataDir, target: join(scratch, "own", DATABASE), overwrite: true });
    const store = open("own");
    if (store.fleetId() === null) throw new FleetError(`${call.dataDir} is part of no fleet`);
    const codec = await codecFor(call, store, source);
    const situation = await situationOf(source, codec);
    const empty = open("database");
    const database = await readDatabase(source, empty, { codec, head: situation.head }).then(
      () => held(empty),
      (error: Error) => error,
    );
    const own = held(store);
    const { position = 0, id = null } = own.mark() ?? {};
    const { head, knownId } = await source.after(position);
    const isAhead = head < position || (knownId ?? id) !== id;
    return { own, isAhead, database, codec, situation };
  } finally {
    for (const store of stores) store.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function held(store: Store): Held {
  const [state, facts, mark] = [store.load(), store.facts(), store.mark()];
  return { id: store.instanceId, load: () => state, facts: () => facts, mark: () => mark };
}

const consequences = {
  "this-node": "All nodes get what this one has.",
  store: "All nodes get what the database has, and this one gives up what is only here.",
} as const;

/** Null: standard input is no terminal. */
function ask(question: string): string | null {
  return process.stdin.isTTY ? (prompt(question) ?? "").trim() : null;
}

async function codecFor(
  { dataDir, env }: Call,
  store: Store,
  source: PostgresSource,
): Promise<EntryCodec> {
  const key = readSecretKey({ dataDir, env });
  if (key === null)
    throw new FleetError(
      `there is no secret key in ${dataDir}: run this on a node, with its --data-dir or its ${KEY_VARIABLE}`,
    );
  const box = new SecretBox(key);
  const fleet = await source.identify({ fleetId: store.fleetId() ?? "", keyId: box.keyId });
  const hasKey = fleet.keyId === box.keyId || (await isNewer(fleet.keyId, { source, store, box }));
  if (fleet.fleetId !== store.fleetId() || !hasKey)
    throw new FleetError(`${dataDir} does not belong to the fleet of this database`);
  return new EntryCodec(fleet.fleetId, box.derive(SIGNING));
}

function described({ own, database, situation: { head, nodes } }: Found): string {
  const present = nodes.map((node) => [node.name, stateOf(node), String(node.stored)]);
  const { config, revision } = own.load();
  const lines = [
    `This node has entry ${own.mark()?.position ?? 0} (revision ${revision}).`,
    database instanceof Error
      ? `The database ends with entry ${head} and holds no state that could be taken.`
      : `The database has entry ${head} (revision ${database.load().revision}).`,
  ];
  if (!(database instanceof Error)) lines.push(differences(database.load().config, config));
  const rows = table([["NODE", "STATE", "LAST ENTRY"], ...present]);
  return `${lines.join("\n")}\n${nodes.length === 0 ? "" : rows}`;
}

/** `This node differs from it in 2 routes and settings.` */
function differences(there: GatewayConfig, here: GatewayConfig): string {
  const change = differenceOf(there, wholeOf(here));
  const parts = collectionNames.flatMap((name) => {
    const { upserts, removals } = change[name];
    const changed = upserts.length === 0 ? [] : [`${upserts.length} added or changed`];
    const removed = removals.length === 0 ? [] : [`${removals.length} removed`];
    const both = [...changed, ...removed].join(", ");
    return both === "" ? [] : [`${name} (${both})`];
  });
  const singles = singletonNames.filter((name) => change[name] !== null);
  const all = [...parts, ...singles];
  return all.length === 0
    ? "Both have the same configuration."
    : `This node differs from the database in ${all.join(", ")}.`;
}
