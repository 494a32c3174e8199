// The side of a gateway that is replaced by another process: starts it, gives way step by step, and takes all back when the other fails; knows no part of the gateway.
import { readFileSync } from "node:fs";
import { ApiError } from "../model/error.ts";
import type { Log } from "../log.ts";

/** What giving way means; each step is taken back by the one below it. */
export interface Predecessor {
  /** Changes nothing any more and lets another process have the data directory. */
  pause(): Promise<void>;
  /** Takes the data directory back and changes things again; the answer says why it must not change anything, null: it may. */
  resume(): Promise<string | null>;
  /** Ends the management API. */
  closeManagement(): void;
  openManagement(): void;
  /** Where the management API listens. */
  readonly managementPort: () => number;
  /** Takes the local socket away. */
  closeSocket(): void;
  /** How the process was started, behind `serve`. */
  readonly words: readonly string[];
  readonly log: Log;
}

/** In the place of the product's times. */
export interface ReplacementTimes {
  readonly deadlineMs: number;
}

export interface Replaced {
  readonly pid: number;
  readonly version: string;
  /** For what is under way to end. */
  readonly drainMs: number;
}

interface Attempt {
  /** 0: not known yet. */
  pid: number;
  version: string;
  readonly drainMs: number;
  step: "started" | "begun" | "released" | "over";
  /** Why the other process says that it cannot serve. */
  reason: string | null;
  /** Until it is done nothing can be taken back. */
  pausing: Promise<void>;
  readonly outcome: PromiseWithResolvers<Replaced>;
  watch: Timer | null;
}

const DEADLINE_MS = 60_000;
const WATCH_MS = 100;
/** A process that was killed is gone after this time, or never. */
const GONE_MS = 5000;
export const DEFAULT_DRAIN_SECONDS = 300;

/** Programs that run as the first process of a container and end with the one that they have started. */
const CONTAINER_INITS = ["tini", "docker-init", "dumb-init", "catatonit"];

export class Replacement {
  readonly #old: Predecessor;
  readonly #deadlineMs: number;
  readonly #replaced = Promise.withResolvers<Replaced>();
  #attempt: Attempt | null = null;
  #isGone = false;

  constructor(old: Predecessor, times: Partial<ReplacementTimes> = {}) {
    this.#old = old;
    this.#deadlineMs = times.deadlineMs ?? DEADLINE_MS;
  }

  /** Resolves when another process serves and this one has only to end what is under way. */
  get done(): Promise<Replaced> {
    return this.#replaced.promise;
  }

  /** Starts the program and resolves when it serves in the place of this one; throws an ApiError with the reason when it does not. */
  async replace(input: {
    readonly argv: readonly string[];
    readonly drain_seconds: number;
  }): Promise<{ readonly pid: number; readonly version: string }> {
    refuseWhereBound();
    const attempt = this.#open(input.drain_seconds * 1000);
    const { log, words } = this.#old;
    const argv = [...input.argv, "serve", ...words, "--take-over"];
    log.info("the gateway is to be replaced", { program: input.argv.join(" ") });
    try {
      const child = Bun.spawn(argv, {
        cwd: process.cwd(),
        env: process.env,
        stdio: ["inherit", "inherit", "inherit"],
        // A terminal's signals are for the one that was started there, and that one hands them on.
        detached: true,
        onExit: (_, code, signal) =>
          void this.#fall(attempt, `the new process ended (${signal ?? `code ${code}`})`),
      });
      child.unref();
      attempt.pid = child.pid;
    } catch (error) {
      void this.#fall(attempt, `${argv[0]} cannot be started: ${(error as Error).message}`);
    }
    const { pid, version } = await attempt.outcome.promise;
    return { pid, version };
  }

  /** The other process is there: it may have the data directory as soon as this resolves. */
  async begin({ pid, version }: { readonly pid: number; readonly version: string }): Promise<{
    readonly management_port: number;
  }> {
    refuseWhereBound();
    // Started by hand: nobody waits for what comes of it.
    const attempt = this.#attempt ?? this.#open(DEFAULT_DRAIN_SECONDS * 1000);
    if (attempt.step !== "started") throw busy();
    // What was started may be a script, which has started the gateway.
    attempt.pid = pid;
    attempt.version = version;
    attempt.step = "begun";
    attempt.pausing = this.#old.pause();
    await attempt.pausing;
    this.#require(attempt, "begun");
    return { management_port: this.#old.managementPort() };
  }

  /** The workers of the other process serve: the management API is its own now. */
  async release({ pid }: { readonly pid: number }): Promise<object> {
    const attempt = this.#of(pid, "begun");
    attempt.step = "released";
    this.#old.closeManagement();
    return {};
  }

  /** The other process serves. From here on there is no way back. */
  async finish({ pid }: { readonly pid: number }): Promise<object> {
    const attempt = this.#of(pid, "released");
    this.#close(attempt);
    this.#isGone = true;
    const { version, drainMs } = attempt;
    await tellSystemd(pid, this.#old.log);
    this.#old.closeSocket();
    attempt.outcome.resolve({ pid, version, drainMs });
    this.#replaced.resolve({ pid, version, drainMs });
    return {};
  }

  /** The other process cannot serve and is about to end. */
  async fail({ pid, reason }: { readonly pid: number; readonly reason: string }): Promise<object> {
    if (this.#attempt?.pid === pid) this.#attempt.reason = reason;
    return {};
  }

  /** This gateway stops: a process that was to follow is of no use. */
  abandon(): void {
    const attempt = this.#attempt;
    this.#isGone = true;
    if (attempt === null) return;
    this.#close(attempt);
    if (attempt.pid !== 0) kill(attempt.pid);
    attempt.outcome.reject(new ApiError(409, "the gateway stops"));
  }

  #open(drainMs: number): Attempt {
    if (this.#attempt !== null || this.#isGone) throw busy();
    const outcome = Promise.withResolvers<Replaced>();
    // Nobody waits for one that was started by hand.
    outcome.promise.catch(() => undefined);
    const attempt: Attempt = {
      ...{ pid: 0, version: "", drainMs, reason: null, outcome },
      ...{ step: "started", watch: null, pausing: Promise.resolve() },
    };
    const deadline = performance.now() + this.#deadlineMs;
    attempt.watch = setInterval(() => {
      if (performance.now() >= deadline)
        void this.#fall(
          attempt,
          `the new process does not serve after ${this.#deadlineMs / 1000} seconds`,
        );
      else if (attempt.pid !== 0 && !isAlive(attempt.pid))
        void this.#fall(attempt, "the new process ended");
    }, WATCH_MS);
    this.#attempt = attempt;
    return attempt;
  }

  #of(pid: number, step: Attempt["step"]): Attempt {
    const attempt = this.#attempt;
    if (attempt === null || attempt.pid !== pid) throw busy();
    this.#require(attempt, step);
    return attempt;
  }

  #require(attempt: Attempt, step: Attempt["step"]): void {
    if (attempt.step !== step) throw new ApiError(409, "the gateway serves on by itself");
  }

  #close(attempt: Attempt): void {
    if (attempt.watch !== null) clearInterval(attempt.watch);
    attempt.step = "over";
  }

  /** Serves on as before. */
  async #fall(attempt: Attempt, why: string): Promise<void> {
    if (attempt.step === "over") return;
    const { step } = attempt;
    this.#close(attempt);
    const { log } = this.#old;
    let reason = attempt.reason ?? why;
    const problem = await this.#takeBack(attempt, step).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
    if (problem !== null) {
      log.error(
        "the gateway serves, but its configuration cannot be changed until it is started anew",
        {
          reason: problem,
        },
      );
      reason += `; the former process serves on, but changes nothing until it is started anew: ${problem}`;
    }
    log.error("the gateway was not replaced and serves on", { reason });
    this.#attempt = null;
    attempt.outcome.reject(new ApiError(409, reason));
  }

  async #takeBack(attempt: Attempt, step: Attempt["step"]): Promise<string | null> {
    if (attempt.pid !== 0) {
      kill(attempt.pid);
      const end = performance.now() + GONE_MS;
      while (isAlive(attempt.pid) && performance.now() < end) await Bun.sleep(10);
    }
    if (step === "started") return null;
    // Whatever is wrong with the data directory, it can be seen and read.
    await attempt.pausing.catch(() => undefined);
    try {
      return await this.#old.resume();
    } finally {
      if (step === "released") this.#old.openManagement();
    }
  }
}

const busy = () => new ApiError(409, "the gateway is being replaced already");

/** Whatever ends with this process would take the next one with it. */
function refuseWhereBound(): void {
  if (process.pid === 1 || CONTAINER_INITS.includes(parentName()))
    throw new ApiError(
      400,
      "the gateway is the main process of a container, which ends with it: replace the container instead",
    );
  const { INVOCATION_ID: service, NOTIFY_SOCKET: socket } = process.env;
  if (socket === undefined && service !== undefined && process.ppid === 1)
    throw new ApiError(
      400,
      "the gateway is a service of systemd that may not name another main process: its unit needs NotifyAccess=all",
    );
  if (socket !== undefined && Bun.which("systemd-notify") === null)
    throw new ApiError(
      400,
      "the gateway is a service of systemd, and there is no systemd-notify to name another main process with",
    );
}

function parentName(): string {
  if (process.ppid !== 1) return "";
  try {
    return readFileSync("/proc/1/comm", "utf8").trim();
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone already, or another user's.
  }
}

/** The service manager ends a service with its main process: that is another one now. */
async function tellSystemd(pid: number, log: Log): Promise<void> {
  if (process.env["NOTIFY_SOCKET"] === undefined) return;
  const told = Bun.spawn(["systemd-notify", `--pid=${pid}`], {
    stdio: ["ignore", "ignore", "ignore"],
    // The key of the secrets may be among the others.
    env: { NOTIFY_SOCKET: process.env["NOTIFY_SOCKET"], PATH: process.env["PATH"] },
    timeout: 5000,
  });
  const code = await told.exited;
  if (code !== 0)
    log.warn("systemd was not told of the new main process and may end the service with this one", {
      code,
    });
}
