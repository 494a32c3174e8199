// The side of a gateway that takes over from one that serves: asks that one to give way, step by step; knows no part of the gateway.
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

/** For the port of the management API to be free once it was let go. */
const BIND_MS = 5000;
const PAUSE_MS = 20;

export class TakeOver {
  readonly #dataDir: string;
  readonly #log: Log;
  /** Where the other's management API listens. */
  readonly managementPort: number;

  private constructor(parts: { dataDir: string; log: Log; managementPort: number }) {
    this.#dataDir = parts.dataDir;
    this.#log = parts.log;
    this.managementPort = parts.managementPort;
  }

  /**
   * Resolves when the other gateway changes nothing any more and has let go of the data directory; null when none serves it.
   * Throws a StartError when it does not want to be replaced.
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
    log.warn("there is no gateway to take over from; this one starts as any other");
    return null;
  }

  /** Has the other one close its management API, and calls `bind` until the port is free. */
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

  /** The other one ends, and has taken its local socket away. */
  async finish(): Promise<void> {
    await this.#step("finish");
  }

  /** Tells the other one why it has to go on. */
  static async fail(dataDir: string, reason: string): Promise<void> {
    await ask(dataDir, "fail", { pid: process.pid, reason }).catch(() => null);
  }

  async #step(step: "release" | "finish"): Promise<void> {
    // It has given the data directory away, so this one is all that there is.
    if ((await ask(this.#dataDir, step, { pid: process.pid })) === null)
      this.#log.warn("the gateway that was to give way is gone; this one goes on without it");
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
    throw new StartError(`the gateway that serves does not give way: ${error.message}`, {
      cause: error,
    });
  }
}
