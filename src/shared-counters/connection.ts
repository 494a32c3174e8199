// One worker's connection to the server of shared counters: deadlines, and no waiting while it is away; knows no counter.
import type { CountersAddress } from "./address.ts";
import { RedisClient } from "bun";
import type { Log } from "../log.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import { whyNot } from "./diagnosis.ts";

export interface ConnectionOptions {
  readonly address: CountersAddress;
  /** A command that needs all rights that the counters need. */
  readonly probe: (client: Pick<RedisClient, "send">) => Promise<unknown>;
  /** Where this worker counts commands and failures. */
  readonly board: WorkerBoard;
  readonly worker: number;
  readonly log: Log["write"];
}

/** A thread that was blocked reads replies before it looks again. */
const SECOND_LOOK_MS = 1;
const CONNECT_MS = 1000;
const FIRST_MS = 500;
/** Between two attempts while the server is away. */
const RETRY_MS = 250;

interface Pending {
  readonly since: number;
  isOverdue: boolean;
  readonly lose: () => void;
}

type Send = (client: RedisClient) => Promise<unknown>;

/** The first failure of a command closes the connection: until it is back, no command is sent, and no request waits. */
export class Connection {
  readonly #options: ConnectionOptions;
  /** Resolves after the first attempt to connect, also a failed one, and soon in any case: a start waits for it. */
  readonly tried: Promise<void>;
  /** Null: the server is away. */
  #client: RedisClient | null = null;
  /** In the order in which the server answers. */
  readonly #pending = new Set<Pending>();
  #watch: Timer | null = null;
  /** Why the server is away, as it was logged; null: it was not. */
  #why: string | null = null;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.tried = Promise.race([this.#connect(), Bun.sleep(FIRST_MS)]);
  }

  /** The reply, as `read` decodes it; null when the server is away, at once, or does not answer in time. Never rejects. */
  ask<T>(send: Send, read: (reply: unknown) => T): Promise<T | null> | null {
    const client = this.#client;
    if (client === null) return null;
    this.#note("counters_operations");
    const { timeoutMs } = this.#options.address;
    const { promise, resolve } = Promise.withResolvers<T | null>();
    const lose = () => {
      this.#note("counters_errors");
      resolve(null);
    };
    const pending: Pending = { since: performance.now(), isOverdue: false, lose };
    this.#pending.add(pending);
    this.#watch ??= setTimeout(this.#look, timeoutMs);
    send(client).then(
      (reply) => {
        if (this.#pending.delete(pending)) resolve(read(reply));
      },
      (error: Error) => this.#lose(client, error.message),
    );
    return promise;
  }

  readonly #look = (): void => {
    this.#watch = null;
    const [oldest] = this.#pending;
    if (oldest === undefined) return;
    const { timeoutMs } = this.#options.address;
    const leftMs = oldest.since + timeoutMs - performance.now();
    if (leftMs > 0) this.#watch = setTimeout(this.#look, leftMs);
    else if (oldest.isOverdue) this.#lose(this.#client, `no reply within ${timeoutMs} ms`);
    else {
      oldest.isOverdue = true;
      this.#watch = setTimeout(this.#look, SECOND_LOOK_MS);
    }
  };

  #lose(client: RedisClient | null, why: string): void {
    // Further commands of a connection that is lost already.
    if (client === null || client !== this.#client) return;
    this.#client = null;
    for (const { lose } of this.#pending) lose();
    this.#pending.clear();
    this.#logLoss(why);
    // After the requests that have waited.
    setTimeout(() => {
      client.close();
      void this.#connect();
    });
  }

  async #connect(): Promise<void> {
    const { address, probe } = this.#options;
    const client = clientOf(address);
    const timer = setTimeout(() => client.close(), 2 * CONNECT_MS);
    try {
      await client.connect();
      await probe(client);
      this.#client = client;
      this.#logReturn();
    } catch (error) {
      client.close();
      if (this.#why === null) this.#logLoss(await whyNot(address, error as Error, CONNECT_MS));
      setTimeout(() => void this.#connect(), RETRY_MS);
    } finally {
      clearTimeout(timer);
    }
  }

  /** One worker logs for all. */
  #logLoss(why: string): void {
    const { board, worker, log } = this.#options;
    this.#why = why;
    const isFirst = board.sum("counters_lost") === 0;
    board.set(worker, "counters_lost", 1);
    if (isFirst) log("warn", "the server of the shared counters is away", { why });
  }

  #logReturn(): void {
    const { board, worker, log } = this.#options;
    if (this.#why === null) return;
    this.#why = null;
    board.set(worker, "counters_lost", 0);
    if (board.sum("counters_lost") === 0) log("info", "the server of the shared counters is back");
  }

  #note(column: "counters_operations" | "counters_errors"): void {
    const { board, worker } = this.#options;
    board.add(worker, column, 1);
  }
}

function clientOf({ url, ca, cert, key }: CountersAddress): RedisClient {
  const files = Object.entries({ ca, cert, key }).filter(([, text]) => text !== null);
  return new RedisClient(url, {
    enableOfflineQueue: false,
    autoReconnect: false,
    connectionTimeout: CONNECT_MS,
    ...(files.length > 0 ? { tls: Object.fromEntries(files) } : {}),
  });
}
