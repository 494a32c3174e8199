// Both ends of the thread that checks regular expressions, within a budget for each piece of work; knows no resource.
import type { TextCheck } from "../model/object-rules.ts";
import {
  checkRegex,
  knownProblem,
  learn,
  REGEX_BUDGET_MS,
  type RegexVerdict,
  TOO_EXPENSIVE,
} from "./regex-safety.ts";

interface Question {
  readonly id: number;
  readonly source: string;
}

interface Answer extends RegexVerdict {
  readonly id: number;
}

interface ThreadScope {
  postMessage(answer: Answer): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Question>) => void): void;
}

/** The thread's end: one verdict for each expression. */
export function serveChecks(scope: ThreadScope): void {
  scope.addEventListener("message", ({ data: { id, source } }) =>
    scope.postMessage({ id, ...checkRegex(source) }),
  );
}

/** The thread holds 60 MB. */
const IDLE_MS = 10_000;

const NOT_YET = "is not checked yet";

export interface RegexCheckerOptions {
  /** Entry file of the thread; null: this thread checks, as in commands. */
  readonly url: URL | null;
  /** Processor time, in milliseconds. Default: REGEX_BUDGET_MS. */
  readonly budgetMs?: number;
}

export class RegexChecker {
  readonly #url: URL | null;
  readonly #budgetMs: number;
  readonly #waiting = new Map<number, PromiseWithResolvers<RegexVerdict>>();
  #thread: Worker | null = null;
  #idle: Timer | null = null;
  #lastId = 0;

  constructor({ url, budgetMs = REGEX_BUDGET_MS }: RegexCheckerOptions) {
    this.#url = url;
    this.#budgetMs = budgetMs;
  }

  /**
   * Runs `work` with a check that never takes long. An expression without a verdict has a problem at first, so that the work
   * must not take effect; then the thread checks it, and `work` runs again. Pieces of work take turns, expression by expression.
   */
  async run<T>(work: (check: TextCheck) => T | Promise<T>, isLimited = true): Promise<T> {
    const verdicts = new Map<string, string | null>();
    let left = isLimited ? this.#budgetMs : Number.POSITIVE_INFINITY;
    for (;;) {
      const missing = new Set<string>();
      const check: TextCheck = (source) => {
        const problem = verdicts.has(source) ? verdicts.get(source) : knownProblem(source);
        if (problem !== undefined) return problem;
        missing.add(source);
        return NOT_YET;
      };
      const [result] = await Promise.allSettled([(async () => await work(check))()]);
      if (missing.size === 0) {
        if (result.status === "fulfilled") return result.value;
        throw result.reason;
      }
      for (const source of missing) {
        const verdict = left > 0 ? await this.#ask(source) : null;
        left -= verdict?.cpuMs ?? 0;
        verdicts.set(source, verdict === null ? TOO_EXPENSIVE : verdict.problem);
      }
    }
  }

  async #ask(source: string): Promise<RegexVerdict> {
    if (this.#url === null) return checkRegex(source);
    const answer = Promise.withResolvers<RegexVerdict>();
    const id = ++this.#lastId;
    this.#waiting.set(id, answer);
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#thread ??= this.#start(this.#url);
    this.#thread.postMessage({ id, source } satisfies Question);
    try {
      const verdict = await answer.promise;
      learn(source, verdict);
      return verdict;
    } finally {
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#endLater();
    }
  }

  #endLater(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      this.#thread?.terminate();
      this.#thread = null;
    }, IDLE_MS);
    this.#idle.unref();
  }

  #start(url: URL): Worker {
    const thread = new Worker(url);
    thread.addEventListener("message", ({ data: { id, ...verdict } }: MessageEvent<Answer>) =>
      this.#waiting.get(id)?.resolve(verdict),
    );
    const fail = (reason: string) => {
      if (this.#thread !== thread) return;
      this.#thread = null;
      const error = new Error(`the thread that checks regular expressions ${reason}`);
      for (const { reject } of this.#waiting.values()) reject(error);
    };
    thread.addEventListener("error", (event: ErrorEvent) => {
      event.preventDefault();
      fail(`has failed: ${event.message}`);
    });
    thread.addEventListener("close", () => fail("has ended"));
    return thread;
  }
}
