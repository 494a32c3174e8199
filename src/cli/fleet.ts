// The command `fleet`: prepares the database of a fleet, shows its nodes, and decides what is right after a loss; starts no gateway.
import { openSecretBox } from "../control/sealing.ts";
import { defaultTimes } from "../fleet/times.ts";
import { FleetError, queryTimes } from "../fleet/postgres-connection.ts";
import { SourceUnreachable } from "../fleet/source.ts";
import { PostgresSource } from "../fleet/postgres-source.ts";
import { meaningOf } from "../fleet/postgres-words.ts";
import { createLog } from "../log.ts";
import { ApiError } from "../model/error.ts";
import { suggestion } from "../model/suggestion.ts";
import { StoreError } from "../store/error.ts";
import { Store } from "../store/store.ts";
import type { Command, CommandContext } from "./command.ts";
import { askGateway } from "./control-socket.ts";
import { adoptState } from "./fleet-adopt.ts";
import { dataDirOf, decodeDatabase, PASSWORD_IN_URL, storeFlags } from "./fleet-flags.ts";
import { createInvitation, type Invited, joinByInvitation } from "./fleet-invitation.ts";
import { removeMembership } from "./fleet-membership.ts";
import { stateOf, table } from "./fleet-table.ts";
import { type Flag, type Flags, parseFlags } from "./flags.ts";
import { takeOperand } from "./operands.ts";
import { outputFlag, resultPrinter } from "./output.ts";
import { dataDirFlag } from "./serve.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  ...storeFlags,
  {
    name: "valid-minutes",
    value: "N",
    description: "For invite: how long the token may be used, 1 to 10080",
    fallback: "60",
  },
  {
    name: "node-name",
    value: "NAME",
    description: "For join: the name of the new node",
    fallback: "the host name",
  },
  {
    name: "from",
    value: "this-node|store",
    choices: ["this-node", "store"],
    description: "For adopt: which state is right, that of this node or of the database",
  },
  { name: "yes", value: null, description: "For adopt: do not ask for confirmation" },
  {
    name: "node",
    value: "NAME",
    description: "For remove: the name or id of the node that is gone for good",
  },
  { ...outputFlag, description: `For status: ${outputFlag.description}` },
];

interface Call extends CommandContext {
  readonly given: Flags;
  readonly dataDir: string;
  readonly argv: readonly string[];
}

const actions: Readonly<Record<string, (call: Call) => Promise<void>>> = {
  init,
  invite,
  join,
  status,
  leave,
  move,
  adopt: (call) => withSource(call.given, (source) => adoptState(call, source)),
  remove,
};

const ACTIONS = "init, invite, join, status, leave, move, adopt or remove";

export const fleetCommand: Command = {
  name: "fleet",
  summary: "Prepare, inspect and repair a fleet of gateways with one configuration",
  usage: "init|invite|join|status|leave|move|adopt|remove",
  details:
    "init    creates the tables in the database of --store and says how to start the nodes\n" +
    "invite  prints a token for one new machine: address, password, certificate of the database and secret key. Run it on a node\n" +
    "join    makes an empty data directory that of a node, with the token in SLUICE_JOIN_TOKEN or on standard input\n" +
    "status  lists the nodes of the fleet\n" +
    "remove  takes the node of --node out of the fleet, which is gone for good and has not left\n" +
    "leave   makes the data directory that of a gateway without a fleet; the gateway must be stopped\n" +
    "move    makes the running gateway of the data directory use the database of --store, which has another address or password now\n" +
    "adopt   after the restore of an older backup of the database, or a failover that lost changes: shows what the database\n" +
    "        and the nodes have, asks which state is right, and makes it that of all nodes. Run it on a node, which may run",
  flags,
  async run(argv, context) {
    const { operand, rest } = takeOperand(flags, argv, `name the action: ${ACTIONS}`);
    const action = actions[operand];
    if (action === undefined)
      throw new UsageError(
        `"${operand}" must be ${ACTIONS}${suggestion(operand, Object.keys(actions))}`,
      );
    const given = parseFlags(flags, rest, context.env);
    const dataDir = dataDirOf(given);
    try {
      await action({ ...context, given, dataDir, argv });
      return 0;
    } catch (error) {
      const isUnreachable = error instanceof SourceUnreachable;
      const isExplained =
        error instanceof FleetError || error instanceof StoreError || error instanceof ApiError;
      if (!isExplained) throw error;
      const message = !isUnreachable
        ? error.message
        : `--store: the database cannot be used: ${meaningOf(error) ?? "check its address, and that it runs"}`;
      process.stderr.write(`sluice: ${message}\n`);
      return 1;
    }
  },
};

async function init({ given, dataDir, env, print }: Call): Promise<void> {
  await withSource(given, async (source) => {
    await source.open();
    const { box, isKnown } = keyOf(dataDir, env);
    const { fleetId, keyId } = await source.identify({
      fleetId: Bun.randomUUIDv7(),
      keyId: box.keyId,
    });
    print(`The database holds the fleet ${fleetId}.\n`);
    if (keyId !== box.keyId)
      throw new FleetError(
        `its secret key (${keyId}) is not the one of ${dataDir} (${box.keyId}): copy the secret.key of a node of the fleet`,
      );
    const key = isKnown ? "SLUICE_SECRET_KEY" : `${dataDir}/secret.key`;
    print(
      `Start the first node with this data directory and --store. Give the other nodes ${key}, and start them with an\n` +
        "empty data directory, the same --store and a --node-name of their own.\n",
    );
  });
}

async function invite({ given, dataDir, env, print }: Call): Promise<void> {
  const minutes = Number(given.get("valid-minutes") ?? 60);
  if (!Number.isInteger(minutes) || minutes < 1 || minutes > MAX_MINUTES)
    throw new UsageError(`--valid-minutes: must be 1 to ${MAX_MINUTES}`);
  const database = decodeDatabase(given);
  if (database === null) throw new UsageError("--store is missing");
  await withSource(given, async (source) => {
    const token = await createInvitation({ source, database, dataDir, env, minutes });
    print(
      `On the new machine, once, within ${minutes} minutes, with an empty data directory:\n\n` +
        `SLUICE_JOIN_TOKEN=${token} sluice fleet join --data-dir DIR --node-name NAME\n\n` +
        "Who has the token has the secrets of the fleet: do not keep it.\n",
    );
  });
}

const MAX_MINUTES = 10_080;

async function join({ given, dataDir, env, print }: Call): Promise<void> {
  const sent = env["SLUICE_JOIN_TOKEN"];
  if (sent === undefined && process.stdin.isTTY)
    process.stderr.write("Paste the token of sluice fleet invite, then press Enter and Ctrl+D:\n");
  const token = sent ?? (await Bun.stdin.text());
  const open = ({ urls, root_certificate }: Invited) =>
    new PostgresSource({ urls, rootCertificate: root_certificate, ...queryTimes });
  await joinByInvitation({ token, dataDir, env, nodeName: given.get("node-name") ?? null, open });
  print(
    `${dataDir} is that of a node now. Start it: sluice serve --data-dir ${dataDir}\n` +
      "It needs no --store and no secret key of its own.\n",
  );
}

async function status({ given, print }: Call): Promise<void> {
  const show = resultPrinter(given, print);
  await withSource(given, async (source) => {
    await source.open();
    const { head } = await source.after(Number.MAX_SAFE_INTEGER);
    const nodes = await source.nodes();
    const result = nodes.map((node) => ({
      name: node.name,
      state: stateOf(node),
      version: node.version,
      served: node.served,
      seen_ms_ago: Math.round(node.seenMsAgo),
      error: node.error,
    }));
    const rows = nodes.map((node) => [
      node.name,
      stateOf(node),
      node.version,
      `${node.served} of ${head}`,
      `${(node.seenMsAgo / 1000).toFixed(1)} s ago`,
      node.error,
    ]);
    const summary = `Last entry of the log: ${head}. Registered nodes: ${nodes.length}.\n`;
    const titles = ["NAME", "STATE", "VERSION", "SERVES", "SEEN", ""];
    const lines = rows.length > 0 ? table([titles, ...rows]) : "";
    show({ head, nodes: result }, `${summary}${lines}`);
  });
}

async function remove({ given, print }: Call): Promise<void> {
  const wanted = given.get("node");
  if (wanted === undefined) throw new UsageError("remove needs --node NAME");
  await withSource(given, async (source) => {
    await source.open();
    const nodes = await source.nodes();
    const node = nodes.find(({ id }) => id === wanted) ?? nodes.find(({ name }) => name === wanted);
    if (node === undefined)
      throw new FleetError(
        `the fleet has no node "${wanted}", only ${nodes.map(({ name }) => name).join(", ")}`,
      );
    if (!(await source.forgetAway(node.id, defaultTimes.away)))
      throw new FleetError(`node "${node.name}" runs; stop it, and it leaves the fleet by itself`);
    print(
      `Node ${node.name} is gone, and another one may have its name. If its machine comes back, it is a node again:\nrun \`sluice fleet leave\` there before.\n`,
    );
  });
}

async function leave({ given, dataDir, print }: Call): Promise<void> {
  const store = openStore(dataDir);
  try {
    if (decodeDatabase(given) !== null)
      await withSource(given, (source) => source.forget(store.instanceId));
    store.leaveFleet();
    removeMembership(dataDir);
  } finally {
    store.close();
  }
  print(`${dataDir} is part of no fleet any more: start it without --store.\n`);
}

/** Of one node: the others go on at their addresses. */
async function move({ given, dataDir, argv, print }: Call): Promise<void> {
  const database = given.get("store") === undefined ? null : decodeDatabase(given);
  if (database === null) throw new UsageError("move needs the new --store, or SLUICE_STORE");
  if (argv.some((word) => PASSWORD_IN_URL.test(word)))
    throw new UsageError(
      "--store: every user of this machine can see a password there: give the URL in SLUICE_STORE, or use --store-password-file",
    );
  const { urls, rootCertificate } = database;
  const input = { urls: [...urls], root_certificate: rootCertificate };
  const moved = await askGateway(dataDir, "useDatabase", input);
  if (moved === null)
    throw new FleetError(`no gateway serves ${dataDir}: start it with the new --store`);
  print(
    moved.is_kept
      ? "The node uses the new address, also after a restart. Go on with the next node.\n"
      : "The node uses the new address. Change its --store or SLUICE_STORE as well: the next start and upgrade use that one.\nGo on with the next node.\n",
  );
}

async function withSource(
  given: Flags,
  use: (source: PostgresSource) => Promise<void>,
): Promise<void> {
  const address = decodeDatabase(given);
  if (address === null) throw new UsageError("--store is missing");
  const source = new PostgresSource({ ...address, ...queryTimes });
  try {
    await use(source);
  } finally {
    await source.close();
  }
}

function openStore(dataDir: string): Store {
  if (!Store.isThere(dataDir)) throw new StoreError(`there is no database in ${dataDir}`);
  const store = Store.open({ dataDir, log });
  if (store.fleetId() !== null) return store;
  store.close();
  throw new StoreError(`${dataDir} is part of no fleet`);
}

/** The secret key of the data directory; created where it is missing. */
function keyOf(dataDir: string, env: CommandContext["env"], open?: Store) {
  const store = open ?? Store.open({ dataDir, log });
  try {
    const box = openSecretBox({ dataDir, env, keyIds: store.sealedKeyIds() });
    return { box, isKnown: env["SLUICE_SECRET_KEY"] !== undefined };
  } finally {
    if (open === undefined) store.close();
  }
}

const log = createLog({
  level: "warn",
  format: "text",
  sink: (line) => void process.stderr.write(line),
});
