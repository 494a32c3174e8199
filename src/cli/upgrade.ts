// The command `upgrade`: replaces the running gateway of a data directory with a new process; knows no steps of it.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { ApiError } from "../model/error.ts";
import { StoreError } from "../store/error.ts";
import { inspectFleet } from "../store/inspect.ts";
import { withProgress } from "./progress.ts";
import type { Command, CommandContext } from "./command.ts";
import { askGateway, GatewayGoneError } from "./control-socket.ts";
import { type Flag, type Flags, parseFlags } from "./flags.ts";
import { decodeDatabase, storeFlags } from "./fleet-flags.ts";
import { upgradeInFleet } from "./fleet-upgrade.ts";
import { DEFAULT_DRAIN_SECONDS } from "./replacement.ts";
import { dataDirFlag } from "./serve.ts";
import { UsageError } from "./usage-error.ts";

/** The old process continues: the new one did not serve, or another upgrade is in progress. Or it was killed meanwhile. */
const FAILED = 1;
/** No attempt: no gateway runs, or it cannot be upgraded. */
const IMPOSSIBLE = 3;

const DRAIN = { initial: DEFAULT_DRAIN_SECONDS, maximum: 86_400 };
/** Load balancers look every two seconds, and need two failures. */
const UNREADY = { initial: 5, maximum: 600 };

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "executable",
    value: "PATH",
    description: "The new program",
    fallback: "the program of this command",
  },
  {
    name: "drain",
    value: "SECONDS",
    description: "Drain time for WebSockets, streams and downloads of the old process",
    fallback: String(DRAIN.initial),
  },
  ...storeFlags,
  {
    name: "unready",
    value: "SECONDS",
    description:
      "In a fleet: how long /readyz of the node responds with 503 before the new process starts, so that load balancers leave",
    fallback: String(UNREADY.initial),
  },
  {
    name: "force",
    value: null,
    description: "In a fleet: only hand over, whatever the other nodes do",
  },
];

export const upgradeCommand: Command = {
  name: "upgrade",
  summary: "Replace the running gateway with a new process, without a dropped connection",
  details:
    "The running gateway starts the program with its own flags and environment. Once the new process serves, the old one\n" +
    "accepts no more connections, drains and exits. If the new process does not serve\n" +
    "within 60 seconds, the old one continues, and the reason is on standard error with exit code 1.\n" +
    "Exit code 3: no attempt, because no gateway serves the directory, or it must be restarted instead.\n" +
    "In a fleet it needs --store of the gateway: it begins only while all other nodes serve and none is upgraded, drains the\n" +
    "node first, and ends when the node serves all changes.\n" +
    "Run it on the machine of the gateway, as the user who owns the data directory, or root.",
  flags,
  async run(argv, { env, print }) {
    const given = parseFlags(flags, argv, env);
    const dataDir = resolve(given.get("data-dir") ?? "./data");
    const input = {
      argv: decodeProgram(given.get("executable")),
      drain_seconds: decodeSeconds("drain", given.get("drain"), DRAIN),
    };
    const handOver = async () => {
      const asked = askGateway(dataDir, "replace", input);
      const answer = await withProgress("the new process starts", asked);
      if (answer === null) throw new StoreError(`no gateway serves ${dataDir}`);
      print(`Process ${answer.pid} serves now, version ${answer.version}.\n`);
    };
    try {
      await upgrade(given, { dataDir, env, print, handOver });
      return 0;
    } catch (error) {
      if (!(error instanceof StoreError || error instanceof ApiError)) throw error;
      process.stderr.write(`sluice: ${error.message}\n`);
      if (error instanceof GatewayGoneError) return FAILED;
      return error instanceof ApiError && error.status === 409 ? FAILED : IMPOSSIBLE;
    }
  },
};

interface Upgrade extends Pick<CommandContext, "env" | "print"> {
  readonly dataDir: string;
  readonly handOver: () => Promise<void>;
}

async function upgrade(given: Flags, { dataDir, env, print, handOver }: Upgrade): Promise<void> {
  const unreadyMs = decodeSeconds("unready", given.get("unready"), UNREADY) * 1000;
  const address = decodeDatabase(given);
  const membership = given.has("force") ? null : inspectFleet(dataDir);
  if (membership === null) return await handOver();
  if (address === null)
    throw new ApiError(
      409,
      "this gateway is a node of a fleet: --store of the gateway is needed to look at the other nodes, or --force to hand over without",
    );
  await upgradeInFleet({ dataDir, env, print, membership, address, unreadyMs }, handOver);
}

/** Virtual directory of the files in a compiled executable. */
const BUNDLED = "/$bunfs/";

/** Starts this program again: the executable, or Bun with the sources. */
export const thisProgram = (): string[] =>
  Bun.main.startsWith(BUNDLED) ? [process.execPath] : [process.execPath, Bun.main];

function decodeProgram(path: string | undefined): string[] {
  if (path === undefined) return thisProgram();
  const program = resolve(path);
  try {
    if (!statSync(program).isFile()) throw new UsageError(`--executable: ${program} is not a file`);
    accessSync(program, constants.X_OK);
    return [program];
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      existsSync(program)
        ? `--executable: ${program} is not executable`
        : `--executable: ${program} does not exist: check the path`,
    );
  }
}

function decodeSeconds(
  flag: string,
  text: string | undefined,
  { initial, maximum }: { readonly initial: number; readonly maximum: number },
): number {
  if (text === undefined) return initial;
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds <= maximum) return seconds;
  throw new UsageError(
    `--${flag}: must be a whole number of seconds up to ${maximum}, not "${text}"`,
  );
}
