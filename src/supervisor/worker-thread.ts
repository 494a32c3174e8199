// One data-plane thread from its start to its end: commands go in, answers come out; knows nothing of restarts or versions.
import type { WorkerCommand, WorkerEvent } from "../snapshot/message.ts";

/** Why a question to a thread has no answer. */
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
  /** Every event, also those that answer a question. */
  readonly onEvent: (event: WorkerEvent) => void;
  /** Called once, when the thread has ended or was terminated. Empty when it ended without an error. */
  readonly onEnd: (error: string) => void;
}

/** While this thread itself was held up, messages of the other one waited: they arrive only after the timer. */
const SECOND_LOOK_MS = 50;

type EventOf<K extends WorkerEvent["kind"]> = Extract<WorkerEvent, { readonly kind: K }>;

interface Question {
  readonly kinds: readonly string[];
  /** The version or question that the command is about; null when it is about none. */
  readonly subject: number | null;
  readonly answer: (event: WorkerEvent) => void;
  readonly fail: (error: NoAnswer) => void;
}

export class WorkerThread {
  readonly #worker: Worker;
  readonly #options: WorkerThreadOptions;
  readonly #questions = new Set<Question>();
  #ended = false;
  /** When the thread last said that something comes along. */
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
    this.#worker.addEventListener("close", () => this.#end());
  }

  get isAlive(): boolean {
    return !this.#ended;
  }

  post(command: WorkerCommand): void {
    if (!this.#ended) this.#worker.postMessage(command);
  }

  /** Whether the thread has said within this time that what it is asked to do comes along. */
  hasProgressed(withinMs: number): boolean {
    return performance.now() - this.#progressAt < withinMs;
  }

  /**
   * Sends a command and waits for the first event of the given kinds; rejects with NoAnswer when the thread has ended, or has
   * neither answered nor made progress for `timeoutMs`.
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

  /** Ends the thread even in the middle of an endless loop. */
  terminate(): void {
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
  if (command.kind === "requests" || command.kind === "session") return null;
  if (command.kind === "ask") return command.ticket;
  return "change" in command ? command.change.revision : command.revision;
}

/** Two questions may be open at once: a worker can refuse to start while the next version waits behind that. */
function isAnswer(event: WorkerEvent, { kinds, subject }: Question): boolean {
  if (!kinds.includes(event.kind)) return false;
  if ("ticket" in event) return event.ticket === subject;
  return !("revision" in event) || event.revision === subject;
}

/** Bun puts lines of source text and a caret before the error itself, which a log has no use for. */
function withoutSource(message: string): string {
  return message
    .split("\n")
    .filter((line) => !/^ *\d+ \| |^ *\^ *$/.test(line))
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" ");
}
