// A thread that another one of its slot has replaced: ends what it serves, and gets no further version.
import type { CounterTable } from "../shared-memory/counter-table.ts";
import type { RequestRing } from "../shared-memory/request-ring.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type {
  Drain,
  EndedPaths,
  WorkerAnswer,
  WorkerCommand,
  WorkerQuestion,
} from "../snapshot/message.ts";
import type { WorkerThread } from "./worker-thread.ts";

/** The rows of one thread in shared memory: no two threads that run have the same ones. */
export interface Place {
  /** From 0. */
  readonly index: number;
  /** Threads that were started there. */
  threads: number;
}

/** Places that the shared memory of this number of workers needs: one more, for a thread that replaces another one. */
export const placesFor = (workers: number): number => workers + 1;

/** Frees what a thread that has ended has held. */
export function forgetPlace({ index, threads }: Place, memory: PlaceMemory): void {
  memory.board.reset(index);
  memory.targets.forgetWorker(index);
  memory.counters.forgetWorker(index);
  if (threads > 0) memory.requests()?.forgetWorker(index);
}

interface PlaceMemory {
  readonly board: WorkerBoard;
  readonly targets: TargetBoard;
  readonly counters: CounterTable;
  readonly requests: () => RequestRing | null;
}

/** Time for the thread to close what must not wait for a client. */
const CLOSE_MS = 1000;

/** Waits for requests, then ends the thread for good; returns the number of aborted requests. */
export async function drainThread(thread: WorkerThread, drain: Drain): Promise<number> {
  // A little longer than the worker itself waits, so that its own count arrives.
  const waitMs = drain.lingerMs + drain.timeoutMs + 1000;
  try {
    return (await thread.ask({ kind: "drain", ...drain }, ["stopped"], waitMs)).aborted;
  } catch {
    return 0;
  } finally {
    thread.terminate();
  }
}

export class RetiringWorker {
  readonly place: Place;
  readonly #thread: WorkerThread;
  #drained: Promise<number> = Promise.resolve(0);

  constructor(thread: WorkerThread, place: Place) {
    this.#thread = thread;
    this.place = place;
  }

  /**
   * Resolves when the thread serves no new request: until then a new version would not be served everywhere. Ends a thread that does not
   * get there.
   */
  async stopAccepting(lingerMs: number): Promise<void> {
    try {
      const command = { kind: "stop_accepting", lingerMs } as const;
      await this.#thread.ask(command, ["closed"], lingerMs + CLOSE_MS);
    } catch {
      this.#thread.terminate();
    }
  }

  /** Ends a thread without heartbeat for too long: it hangs in a loop. */
  checkHeartbeat(board: WorkerBoard, silentMs: number): void {
    const last = board.get(this.place.index, "heartbeat");
    if (Date.now() - last > silentMs) this.#thread.terminate();
  }

  /** Begins to end; resolves when the thread has ended, to the number of aborted requests. */
  drain(drain: Drain): Promise<number> {
    this.#drained = drainThread(this.#thread, drain);
    return this.#drained;
  }

  post(command: WorkerCommand): void {
    this.#thread.post(command);
  }

  /** Null: the thread has ended, or does not answer in time. */
  async ask(question: WorkerQuestion, by: { ticket: number; ms: number }): Promise<WorkerAnswer> {
    const command = { kind: "ask", ticket: by.ticket, question } as const;
    try {
      return (await this.#thread.ask(command, ["answer"], by.ms)).value;
    } catch {
      return null;
    }
  }

  /** Closes connections of routes and targets that there are no longer; null: all WebSockets. */
  end(paths: EndedPaths | null): void {
    // Commands without a question to answer need no ticket of their own.
    this.#thread.post({ kind: "ask", ticket: 0, question: { kind: "end", paths } });
  }

  /** `drain` has to end within this time, because the gateway stops or is replaced (`lingerMs` as in `Drain`). */
  async stop({ timeoutMs, lingerMs }: Drain): Promise<number> {
    if (lingerMs === 0) this.end(null);
    const late = Symbol("late");
    const first = await Promise.race([this.#drained, Bun.sleep(timeoutMs).then(() => late)]);
    if (typeof first === "number") return first;
    this.end(null);
    await Promise.race([this.#drained, Bun.sleep(CLOSE_MS)]);
    this.#thread.terminate();
    return 0;
  }
}
