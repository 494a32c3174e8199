// Runs one local operation: in the gateway that serves the data directory, or offline if none does; knows no operation.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { ApiError } from "../model/error.ts";
import type { Rollout } from "../snapshot/rollout.ts";
import { DirectoryInUseError, StoreError } from "../store/error.ts";
import { DATABASE } from "../store/open-database.ts";
import {
  askGateway,
  type LocalAnswer,
  type LocalInput,
  type LocalOperation,
  type LocalOperations,
} from "./control-socket.ts";
import type { Flags } from "./flags.ts";

/** The operations on a data directory without a running gateway. */
export interface Offline {
  readonly operations: LocalOperations;
  close(): void;
}

/** For changes without workers: the next start serves them. */
export const idleRollout: Rollout = {
  prepare: () => Promise.resolve([]),
  activate: () => Promise.resolve(),
  discard: () => Promise.resolve(),
  status: () => ({ workers: 0, ready: 0, revision: 0 }),
};

/** Locks the directory; throws a DirectoryInUseError when a gateway holds it. */
export type OpenOffline = (dataDir: string) => Offline;

/** A gateway that starts or stops holds the directory without listening. */
const PATIENCE_MS = 5000;
const PAUSE_MS = 100;

export interface LocalCall<K extends LocalOperation> {
  readonly operation: K;
  readonly input: LocalInput<K>;
}

/** Prints the result with `show` and resolves to the exit code. */
export async function runLocally<K extends LocalOperation>(
  openOffline: OpenOffline,
  given: Flags,
  { call, show }: { call: () => Promise<LocalCall<K>>; show: (answer: LocalAnswer<K>) => void },
): Promise<number> {
  const dataDir = resolve(given.get("data-dir") ?? "./data");
  try {
    // Opening would create a new one.
    if (!existsSync(join(dataDir, DATABASE)))
      throw new StoreError(`there is no database at ${join(dataDir, DATABASE)}`);
    show(await perform(openOffline, dataDir, await call()));
    return 0;
  } catch (error) {
    if (!(error instanceof StoreError || error instanceof ApiError)) throw error;
    process.stderr.write(`sluice: ${error.message}\n`);
    return 1;
  }
}

async function perform<K extends LocalOperation>(
  openOffline: OpenOffline,
  dataDir: string,
  { operation, input }: LocalCall<K>,
): Promise<LocalAnswer<K>> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await askGateway(dataDir, operation, input);
    if (answer !== null) return answer;
    const offline = tryOpen(openOffline, dataDir, Date.now() < deadline);
    if (offline === null) {
      await Bun.sleep(PAUSE_MS);
      continue;
    }
    try {
      const run = offline.operations[operation] as (
        input: LocalInput<K>,
      ) => LocalAnswer<K> | Promise<LocalAnswer<K>>;
      return await run.call(offline.operations, input);
    } finally {
      offline.close();
    }
  }
}

/** Null while a gateway holds the directory and may still listen or release it. */
function tryOpen(openOffline: OpenOffline, dataDir: string, mayWait: boolean): Offline | null {
  try {
    return openOffline(dataDir);
  } catch (error) {
    if (!(error instanceof DirectoryInUseError)) throw error;
    if (mayWait) return null;
    throw new StoreError(`${error.message}, which does not respond on its control socket`, {
      cause: error,
    });
  }
}
