// The faults of a run of chaos: each begins one, and returns what ends it.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { executable } from "../support/executable.ts";
import { clockOff, fakeTime } from "../support/faketime.ts";
import type { TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand } from "../support/gateway.ts";
import { eventually } from "../support/poll.ts";
import type { Postgres } from "../support/postgres.ts";
import type { Wire } from "../support/wire.ts";
import type { History } from "./history.ts";
import type { FaultKind } from "./plan.ts";

/** A state that all nodes are to take when the database was restored to the past. */
export interface Choice {
  readonly from: "this-node" | "store";
}

export interface Scene {
  readonly fleet: TestFleet;
  readonly history: History;
  /** The server that the wires reach. */
  database: Postgres;
  /** Not null: the database is of the past, and nobody has decided yet what is right. */
  choice: Choice | null;
  /** How often the secret key was rotated. */
  rotations: number;
  /** What writers know of it. */
  readonly onRewind: (() => void)[];
  /** Of each node, read at its start. */
  readonly environments: readonly Record<string, string>[];
  /** Words that start a program on a machine of its own, for copies of nodes. */
  readonly spare: readonly string[];
  /** Stopped at the end of the run. */
  readonly cleanups: (() => unknown)[];
}

/** A function that it returns is called when all nodes serve again. */
type End = () => unknown;
type Begin = (scene: Scene, index: number, lastsMs: number) => Promise<End> | End;

const HOUR_S = 3600;

/** The process that serves a node, which is no child of this one after an upgrade; null: none does. */
export function pidOf({ dataDir }: Gateway): number | null {
  try {
    const pid = Number(readFileSync(join(dataDir, "sluice.pid"), "utf8"));
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(dataDir) ? pid : null;
  } catch {
    return null;
  }
}

const nodeOf = ({ fleet }: Scene, index: number): Gateway => {
  const node = fleet.nodes[index];
  if (node === undefined) throw new Error(`there is no node ${index}`);
  return node;
};

/** Something that happens to the process of a node, which owes nobody a response meanwhile. */
async function excused(scene: Scene, index: number, act: (node: Gateway) => Promise<unknown>) {
  const end = scene.history.excuse(index);
  await act(nodeOf(scene, index));
  end();
}

async function restart(scene: Scene, index: number): Promise<void> {
  const { history } = scene;
  await excused(scene, index, async (node) => {
    const begun = performance.now();
    const code = await node.terminate();
    const ended = performance.now();
    await node.start();
    const ms = [ended - begun, performance.now() - ended].map(Math.round);
    history.note(
      `restart of n${index + 1}: ended with ${code} after ${ms[0]} ms, ready after ${ms[1]} ms`,
    );
  });
}

/** A fault of the connection between a node and the database. */
const ofWire =
  (change: (wire: Wire) => void): Begin =>
  ({ fleet }, index) => {
    const wire = fleet.wires[index];
    if (wire === undefined) throw new Error(`node ${index} has no wire`);
    change(wire);
    return () => {
      wire.delayMs = 0;
      wire.heal();
    };
  };

const withClock =
  (seconds: number): Begin =>
  async (scene, index) => {
    if (fakeTime.lacks !== null) {
      scene.history.note(`skipped: needs ${fakeTime.lacks}`);
      return () => undefined;
    }
    const environment = scene.environments[index] ?? {};
    Object.assign(environment, clockOff(seconds));
    await restart(scene, index);
    return async () => {
      for (const name of Object.keys(environment)) delete environment[name];
      await restart(scene, index);
    };
  };

/** As the copy of a disk that starts beside the first one, on a machine of its own. */
const copied: Begin = (scene, index) => {
  const { fleet, spare, history } = scene;
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-chaos-copy-"));
  const filter = (path: string) => !path.endsWith(".sock");
  cpSync(nodeOf(scene, index).dataDir, dataDir, { recursive: true, filter });
  const url = fleet.postgres.urlAt(fleet.wires[index]?.port ?? 0, fleet.hostname);
  const words = ["--data-dir", dataDir, "--store", url, "--node-name", `n${index + 1}`];
  const child = Bun.spawn(
    [...spare, executable, "serve", ...words, "--admin", "127.0.0.1:9080", "--workers", "1"],
    { cwd: dataDir, stdio: ["ignore", "ignore", "ignore"] },
  );
  // The copy may speak for the node: then it is the one that replies count.
  const end = history.excuse(index);
  return async () => {
    history.note(`the copy ${child.exitCode === null ? "runs" : "was refused at its start"}`);
    child.kill("SIGKILL");
    await child.exited;
    rmSync(dataDir, { recursive: true, force: true });
    return end;
  };
};

const upgraded: Begin = async (scene, index) => {
  const node = nodeOf(scene, index);
  const words = ["--data-dir", node.dataDir, "--force", "--unready", "0", "--drain", "1"];
  const { code, stdout, stderr } = await runCommand(["upgrade", ...words], { binary: executable });
  scene.history.note(`upgrade of n${index + 1}: code ${code}, ${(stdout || stderr).trim()}`);
  // The next faults need a process that the fleet has started.
  return () =>
    excused(scene, index, async () => {
      const pid = pidOf(node);
      if (pid !== null && pid !== node.pid) process.kill(pid, "SIGTERM");
      await eventually(() => pidOf(node) === null || pidOf(node) === node.pid);
      await node.restart();
    });
};

const rotated: Begin = async (scene, index) => {
  const { dataDir } = nodeOf(scene, index);
  scene.rotations++;
  const { code, stdout, stderr } = await runCommand(["rotate-key", "--data-dir", dataDir], {
    binary: executable,
  });
  scene.history.note(`rotation at n${index + 1}: code ${code}, ${(stdout || stderr).trim()}`);
  return () => undefined;
};

/** To a standby that has each commit: an address that moves. */
const failover: Begin = async (scene, _index, lastsMs) => {
  const old = scene.database;
  const standby = await old.standby();
  scene.cleanups.push(() => standby.stop());
  await old.commitOnStandby(true);
  await eventually(async () => {
    const sql = old.connect();
    try {
      const [row] = await sql`select sync_state from pg_stat_replication`;
      return row?.sync_state === "sync";
    } finally {
      await sql.close({ timeout: 0 });
    }
  });
  await old.kill();
  scene.history.note("the primary is dead");
  await Bun.sleep(lastsMs);
  await standby.promote();
  scene.database = standby;
  for (const wire of scene.fleet.wires) wire.target = standby.port;
  return () => undefined;
};

/** From a backup that was made at the beginning; which state is right is decided by an operator while the fleet heals. */
const restored: Begin = async (scene, _index, lastsMs) => {
  const { database, history, rotations } = scene;
  for (const listener of scene.onRewind) listener();
  const end = history.rewind();
  const backup = database.backup();
  await Bun.sleep(lastsMs);
  await database.restore(backup);
  // A database from before a rotation cannot be right.
  const isUsable = scene.rotations === rotations && lastsMs % 2 === 0;
  scene.choice = { from: isUsable ? "store" : "this-node" };
  history.note(`the database is that of ${Math.round(lastsMs)} ms before`);
  return () => end;
};

/** As an operator does who sees a node that has diverged: on the node that has most. */
export async function decide(scene: Scene, { from }: Choice): Promise<void> {
  const { fleet, history } = scene;
  const known: { name: string; stored: number; state: string }[] = (
    await Promise.all(fleet.nodes.map((node) => node.ok("GET", "/api/v1/nodes").catch(() => [])))
  ).flat();
  const [most] = known
    .filter(({ state }) => state === "diverged")
    .toSorted((a, b) => b.stored - a.stored);
  if (most === undefined) return;
  const { dataDir } = nodeOf(scene, Number(most.name.slice(1)) - 1);
  const url = scene.database.url;
  const words = ["--data-dir", dataDir, "--store", url, "--from", from, "--yes"];
  const { code, stdout, stderr } = await runCommand(["fleet", "adopt", ...words], {
    binary: executable,
  });
  history.note(`adopt --from ${from} at ${most.name}: code ${code}, ${(stderr || stdout).trim()}`);
}

export const faults: Readonly<Record<FaultKind, Begin>> = {
  "kill -9": async (scene, index) => {
    const node = nodeOf(scene, index);
    const end = scene.history.excuse(index);
    await node.kill9();
    return async () => {
      await node.start();
      end();
    };
  },
  SIGSTOP: (scene, index) => {
    const node = nodeOf(scene, index);
    const end = scene.history.excuse(index);
    node.signal("SIGSTOP");
    return () => {
      node.signal("SIGCONT");
      end();
    };
  },
  restart: async (scene, index) => {
    await restart(scene, index);
    return () => undefined;
  },
  "broken connections": ofWire((wire) => wire.cut()),
  "dropped packets": ofWire((wire) => wire.hold()),
  "dropped to the database": ofWire((wire) => wire.hold("to server")),
  "dropped from the database": ofWire((wire) => wire.hold("to clients")),
  "delay of 80 ms": ofWire((wire) => {
    wire.delayMs = 80;
  }),
  "delay of 2 s": ofWire((wire) => {
    wire.delayMs = 2000;
  }),
  "disk full": (scene, index) => {
    const ballast = join(nodeOf(scene, index).dataDir, "ballast");
    Bun.spawnSync(["dd", "if=/dev/zero", `of=${ballast}`, "bs=4096"]);
    return () => rmSync(ballast, { force: true });
  },
  "clock an hour fast": withClock(HOUR_S),
  "clock an hour slow": withClock(-HOUR_S),
  "copied node": copied,
  upgrade: upgraded,
  "rotation of the key": rotated,
  "database stopped": ({ database }) => {
    database.signal("SIGSTOP");
    return () => database.signal("SIGCONT");
  },
  "database killed": async ({ database }) => {
    await database.kill();
    return () => database.start();
  },
  "database restarted": async ({ database }) => {
    await database.kill("SIGINT");
    await database.start();
    return () => undefined;
  },
  failover,
  "restored to the past": restored,
};

/** A small file system with a key, for the data directory of a node. */
export function mountDisk(key: Uint8Array, cleanups: (() => unknown)[]): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-chaos-"));
  const mount = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", path];
  const { exitCode, stderr } = Bun.spawnSync(mount);
  if (exitCode !== 0) throw new Error(`${mount.join(" ")}: ${stderr}`);
  cleanups.push(() => {
    Bun.spawnSync(["umount", "--lazy", path]);
    rmSync(path, { recursive: true, force: true });
  });
  writeFileSync(join(path, "secret.key"), key, { mode: 0o600 });
  return path;
}
