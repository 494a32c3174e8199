// The shared counters of one worker: names of keys, limits, and what may happen once; knows no plugin.
import { hkdfSync } from "node:crypto";
import type { SharedCounters } from "../pdk/kit.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import type { CountersAddress } from "./address.ts";
import { readCounts, runLimitScript, wordsOf } from "./limit-script.ts";

/** What a worker gets from the main thread. */
export interface CountersCommand extends CountersAddress {
  /** Id of the fleet, or of the gateway without one: two of them may use one server. */
  readonly scope: string;
}

export interface WorkerCountersOptions extends Omit<ConnectionOptions, "address" | "probe"> {
  /** Derived from the secret key of the gateway. */
  readonly key: string;
}

export class WorkerCounters {
  readonly #command: CountersCommand;
  readonly #options: WorkerCountersOptions;
  readonly #connection: Connection;
  /** Hashes names, which may hold addresses and tokens of clients. */
  #secret = Buffer.alloc(0);

  constructor(command: CountersCommand, options: WorkerCountersOptions) {
    this.#command = command;
    this.#options = options;
    this.useKey(options.key);
    const key = `sluice:${command.scope}:probe`;
    const demand = { key, algorithm: "fixed", windowMs: 1000, capacity: 1000 } as const;
    const probe = { ...demand, perSecond: 1, cost: 1, waiting: 1, want: 1 };
    const words = wordsOf([key], "add", { nodes: 1, demands: [probe] });
    this.#connection = new Connection({
      ...options,
      address: command,
      probe: async (client) => {
        await runLimitScript(client, words);
        await client.send("SET", [`${key}:once`, "1", "NX", "PX", "1"]);
        await client.send("EXISTS", [`${key}:once`]);
      },
    });
  }

  /** All counts begin anew, on all nodes with the same key. */
  useKey(key: string): void {
    this.#secret = Buffer.from(hkdfSync("sha256", key, "", "shared counters", 32));
  }

  /** Resolves when the server has answered, or cannot be reached. */
  get tried(): Promise<void> {
    return this.#connection.tried;
  }

  forInstance(instanceId: string): SharedCounters {
    const { scope } = this.#command;
    const { board, worker } = this.#options;
    const connection = this.#connection;
    // An instance counts under its id, so that it and its counts go together.
    const name = (key: string) => {
      const hash = new Bun.CryptoHasher("sha256", this.#secret).update(key).digest("base64url");
      return `sluice:${scope}:${instanceId}:${hash.slice(0, 22)}`;
    };
    return {
      get nodes() {
        return board.nodes;
      },
      count(how, demands) {
        const keys = demands.map(({ key, algorithm, windowMs }) =>
          name(`${algorithm} ${windowMs} ${key}`),
        );
        const words = wordsOf(keys, how, { nodes: board.nodes, demands });
        return connection.ask((client) => runLimitScript(client, words), readCounts);
      },
      once(key, keepMs) {
        const words = [name(`once ${key}`), "1", "NX", "PX", String(keepMs)];
        return connection.ask(
          (client) => client.send("SET", words),
          (reply) => reply !== null,
        );
      },
      isKnown(key) {
        const words = [name(`once ${key}`)];
        return connection.ask(
          (client) => client.send("EXISTS", words),
          (reply) => reply === 1,
        );
      },
      noteFallback: () => board.add(worker, "counters_fallbacks", 1),
    };
  }
}
