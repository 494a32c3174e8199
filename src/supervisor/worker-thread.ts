// One data-plane thread from its start to its end: sends commands, receives answers; knows nothing of restarts or versions.
import type { WorkerCommand, WorkerEvent } from "../snapshot/message.ts";

/** The thread has stopped, or did not answer in time. */
export class NoAnswer extends Error {
  readonly reason: "stopped" | "silent";

  constructor(reason: "stopped" | "silent") {
    super(reason === "stopped" ? "stopped" : "did not answer in time");
    this.name = "NoAnswer";
    this.reason = reason;
  }
}

export interface WorkerThreadOptions {
  readonly url: URL;
  /** Every event, also the answers. */
  readonly onEvent: (event: WorkerEvent) => void;
  /** Called once, when the thread has ended or was terminated; the empty string when it ended without an error. */
  readonly onEnd: (error: string) => void;
  /** Called before the thread is terminated, while it may still run. Default: nothing. */
  readonly beforeEnd?: () => void;
  /** Called once, when it no longer executes anything: a terminated thread may still do so for a moment. */
  readonly onGone: () => void;
}

/** While this thread is blocked, messages of the other one wait and arrive only after the timer: it checks twice. */
const SECOND_LOOK_MS = 50;

type EventOf<K extends WorkerEvent["kind"]> = Extract<WorkerEvent, { readonly kind: K }>;

interface Question {
  readonly kinds: readonly string[];
  /** The revision or ticket of the command; null when it has none. */
  readonly subject: number | null;
  readonly answer: (event: WorkerEvent) => void;
  readonly fail: (error: NoAnswer) => void;
}

export class WorkerThread {
  readonly #worker: Worker;
  readonly #options: WorkerThreadOptions;
  readonly #questions = new Set<Question>();
  #ended = false;
  /** When the thread last reported progress. */
  #progressAt = Number.NEGATIVE_INFINITY;
  #error = "";

  constructor(options: WorkerThreadOptions) {
    this.#options = options;
    this.#worker = new Worker(options.url);
    this.#worker.addEventListener("message", (event: MessageEvent<WorkerEvent>) =>
      this.#receive(event.data),
    );
    this.#worker.addEventListener("error", (event: ErrorEvent) => {
      this.#error = withoutSource(event.message);
      event.preventDefault();
    });
    this.#worker.addEventListener("close", () => {
      this.#end();
      options.onGone();
    });
  }

  get isAlive(): boolean {
    return !this.#ended;
  }

  post(command: WorkerCommand): void {
    if (!this.#ended) this.#worker.postMessage(command);
  }

  /** Whether the thread reported progress within this time. */
  hasProgressed(withinMs: number): boolean {
    return performance.now() - this.#progressAt < withinMs;
  }

  /**
   * Sends a command and waits for the first event of the given kinds; rejects with NoAnswer when the thread ends, or neither
   * answers nor reports progress for `timeoutMs`.
   */
  ask<K extends WorkerEvent["kind"]>(
    command: WorkerCommand,
    kinds: readonly K[],
    timeoutMs: number,
  ): Promise<EventOf<K>> {
    if (this.#ended) return Promise.reject(new NoAnswer("stopped"));
    const { promise, resolve, reject } = Promise.withResolvers<EventOf<K>>();
    const question: Question = {
      kinds,
      subject: subjectOf(command),
      answer: (event) => resolve(event as EventOf<K>),
      fail: reject,
    };
    const askedAt = performance.now();
    let isSecondLook = false;
    const look = () => {
      const leftMs = Math.max(askedAt, this.#progressAt) + timeoutMs - performance.now();
      if (leftMs <= 0 && isSecondLook) return reject(new NoAnswer("silent"));
      isSecondLook = leftMs <= 0;
      timer = setTimeout(look, Math.max(leftMs, SECOND_LOOK_MS));
    };
    let timer = setTimeout(look, timeoutMs);
    this.#questions.add(question);
    this.#worker.postMessage(command);
    return promise.finally(() => {
      clearTimeout(timer);
      this.#questions.delete(question);
    });
  }

  /** Ends the thread, also in an endless loop. */
  terminate(): void {
    if (!this.#ended) this.#options.beforeEnd?.();
    this.#worker.terminate();
    this.#end();
  }

  #receive(event: WorkerEvent): void {
    if (this.#ended) return;
    if (event.kind === "progress" || event.kind === "taken") this.#progressAt = performance.now();
    for (const question of this.#questions) if (isAnswer(event, question)) question.answer(event);
    this.#options.onEvent(event);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const question of this.#questions) question.fail(new NoAnswer("stopped"));
    this.#options.onEnd(this.#error);
  }
}

function subjectOf(command: WorkerCommand): number | null {
  if (command.kind === "start" || command.kind === "drain") return null;
  if (command.kind === "stop_accepting") return null;
  if (
    command.kind === "management" ||
    command.kind === "requests" ||
    command.kind === "session" ||
    command.kind === "keys"
  )
    return null;
  if (command.kind === "ask") return command.ticket;
  return "change" in command ? command.change.revision : command.revision;
}

/** Two questions may be open at once: a worker can reject its first version while the next one waits behind it. */
function isAnswer(event: WorkerEvent, { kinds, subject }: Question): boolean {
  if (!kinds.includes(event.kind)) return false;
  if ("ticket" in event) return event.ticket === subject;
  return !("revision" in event) || event.revision === subject;
}

/** Bun puts lines of source text and a caret before the error itself: not for a log. */
function withoutSource(message: string): string {
  return message
    .split("\n")
    .filter((line) => !/^ *\d+ \| |^ *\^ *$/.test(line))
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" ");
}
