// The new process of an upgrade: takes over from the running gateway step by step; knows no part of the gateway.
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import {
  askGateway,
  GatewayGoneError,
  type HandOver,
  type LocalAnswer,
  type LocalInput,
} from "./control-socket.ts";
import { StartError } from "./start-error.ts";

/** Time until the released port of the management API is free. */
const BIND_MS = 5000;
const PAUSE_MS = 20;

export class TakeOver {
  readonly #dataDir: string;
  readonly #log: Log;
  /** Address of the old process's management API. */
  readonly managementPort: number;

  private constructor(parts: { dataDir: string; log: Log; managementPort: number }) {
    this.#dataDir = parts.dataDir;
    this.#log = parts.log;
    this.managementPort = parts.managementPort;
  }

  /**
   * Resolves when the old process has stopped changes and released the data directory; null when none serves it.
   * Throws a StartError when it refuses the upgrade.
   */
  static async begin({
    dataDir,
    version,
    log,
  }: {
    readonly dataDir: string;
    readonly version: string;
    readonly log: Log;
  }): Promise<TakeOver | null> {
    const answer = await ask(dataDir, "begin", { pid: process.pid, version });
    if (answer !== null)
      return new TakeOver({ dataDir, log, managementPort: answer.management_port });
    log.warn("no gateway to take over from; normal start");
    return null;
  }

  /** Makes the old process close its management API, and calls `bind` until the port is free. */
  async bindManagement<T>(bind: () => T): Promise<T> {
    await this.#step("release");
    const end = performance.now() + BIND_MS;
    for (;;) {
      try {
        return bind();
      } catch (error) {
        if (performance.now() >= end) throw error;
        await Bun.sleep(PAUSE_MS);
      }
    }
  }

  /** The old process drains, and has removed its control socket. */
  async finish(): Promise<void> {
    await this.#step("finish");
  }

  /** Tells the old process to roll back, with the reason. */
  static async fail(dataDir: string, reason: string): Promise<void> {
    await ask(dataDir, "fail", { pid: process.pid, reason }).catch(() => null);
  }

  async #step(step: "release" | "finish"): Promise<void> {
    // It has released the data directory, so only this process can serve.
    if ((await ask(this.#dataDir, step, { pid: process.pid })) === null)
      this.#log.warn("the old process has ended; the start continues without it");
  }
}

async function ask<K extends keyof HandOver>(
  dataDir: string,
  step: K,
  input: LocalInput<K>,
): Promise<LocalAnswer<K> | null> {
  try {
    return await askGateway(dataDir, step, input);
  } catch (error) {
    if (error instanceof GatewayGoneError) return null;
    if (!(error instanceof ApiError)) throw error;
    throw new StartError(`the running gateway refuses the upgrade: ${error.message}`, {
      cause: error,
    });
  }
}
