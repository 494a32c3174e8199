// The old process of an upgrade: starts the new process, hands over step by step, and rolls back when the new one fails; knows no part of the gateway.
import { readFileSync } from "node:fs";
import { ApiError } from "../model/error.ts";
import type { Log } from "../log.ts";
import type { ServiceManager } from "../supervisor/service-manager.ts";

/** The steps of the handover; each one is reverted by the step below it. */
export interface Predecessor {
  /** Stops all changes and releases the data directory. */
  pause(): Promise<void>;
  /** Locks the data directory again and allows changes; returns why changes must stay blocked, null: they are allowed. */
  resume(): Promise<string | null>;
  /** Stops the management API. */
  closeManagement(): void;
  openManagement(): void;
  /** Address of the management API. */
  readonly managementPort: () => number;
  /** Removes the control socket. */
  closeSocket(): void;
  /** Arguments of the process behind `serve`. */
  readonly words: readonly string[];
  readonly log: Log;
  readonly service: ServiceManager;
}

/** Override the default times. */
export interface ReplacementTimes {
  readonly deadlineMs: number;
}

export interface Replaced {
  readonly pid: number;
  readonly version: string;
  /** Time to drain. */
  readonly drainMs: number;
}

interface Attempt {
  /** 0: unknown. */
  pid: number;
  version: string;
  readonly drainMs: number;
  step: "started" | "begun" | "released" | "over";
  /** Why the new process reports that it cannot serve. */
  reason: string | null;
  /** Rollback must wait for it. */
  pausing: Promise<void>;
  readonly outcome: PromiseWithResolvers<Replaced>;
  watch: Timer | null;
}

const DEADLINE_MS = 60_000;
const WATCH_MS = 100;
/** A killed process is gone after this time, or never. */
const GONE_MS = 5000;
export const DEFAULT_DRAIN_SECONDS = 300;

/** Init programs of containers that end with their child process. */
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

  /** Resolves when the new process serves and this one only has to drain. */
  get done(): Promise<Replaced> {
    return this.#replaced.promise;
  }

  /** Starts the program and resolves when it serves instead of this one; throws an ApiError with the reason when it does not. */
  async replace(input: {
    readonly argv: readonly string[];
    readonly drain_seconds: number;
  }): Promise<{ readonly pid: number; readonly version: string }> {
    refuseWhereBound(this.#old.service);
    const attempt = this.#open(input.drain_seconds * 1000);
    const { log, words } = this.#old;
    const argv = [...input.argv, "serve", ...words, "--take-over"];
    this.#old.service.notify("RELOADING=1");
    try {
      const child = Bun.spawn(argv, {
        cwd: process.cwd(),
        env: process.env,
        stdio: ["inherit", "inherit", "inherit"],
        // Signals of the terminal go to the process that was started there, which forwards them.
        detached: true,
        onExit: (_, code, signal) =>
          void this.#fall(attempt, `the new process ended (${signal ?? `code ${code}`})`),
      });
      child.unref();
      attempt.pid = child.pid;
      // Not before: what follows the log may end this process, and the other one must go on.
      log.info("the gateway is to be replaced", { program: input.argv.join(" ") });
    } catch (error) {
      void this.#fall(attempt, `${argv[0]} cannot be started: ${(error as Error).message}`);
    }
    const { pid, version } = await attempt.outcome.promise;
    return { pid, version };
  }

  /** The new process runs: it may lock the data directory as soon as this resolves. */
  async begin({ pid, version }: { readonly pid: number; readonly version: string }): Promise<{
    readonly management_port: number;
  }> {
    refuseWhereBound(this.#old.service);
    // Started manually: no command waits for the result.
    const attempt = this.#attempt ?? this.#open(DEFAULT_DRAIN_SECONDS * 1000);
    if (attempt.step !== "started") throw busy();
    // The started program may be a script that has started the gateway.
    attempt.pid = pid;
    attempt.version = version;
    attempt.step = "begun";
    attempt.pausing = this.#old.pause();
    await attempt.pausing;
    this.#require(attempt, "begun");
    return { management_port: this.#old.managementPort() };
  }

  /** The workers of the new process serve: the management API moves to it. */
  async release({ pid }: { readonly pid: number }): Promise<object> {
    const attempt = this.#of(pid, "begun");
    attempt.step = "released";
    this.#old.closeManagement();
    return {};
  }

  /** The new process serves. From here on there is no rollback. */
  async finish({ pid }: { readonly pid: number }): Promise<object> {
    const attempt = this.#of(pid, "released");
    this.#close(attempt);
    this.#isGone = true;
    const { version, drainMs } = attempt;
    this.#notifyOfSuccessor(pid);
    this.#old.closeSocket();
    attempt.outcome.resolve({ pid, version, drainMs });
    this.#replaced.resolve({ pid, version, drainMs });
    return {};
  }

  /** Announces the new main process: systemd ends a service with its main process. */
  #notifyOfSuccessor(pid: number): void {
    const { service, log } = this.#old;
    service.unwatch();
    if (service.isThere && !service.notify(`MAINPID=${pid}`, "READY=1"))
      log.warn(
        "systemd was not notified of the new main process and may end the service with this one",
      );
  }

  /** The new process cannot serve and is about to exit. */
  async fail({ pid, reason }: { readonly pid: number; readonly reason: string }): Promise<object> {
    if (this.#attempt?.pid === pid) this.#attempt.reason = reason;
    return {};
  }

  /** This gateway stops, so the new process must not take over. */
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
    // No command waits for a process that was started manually.
    outcome.promise.catch(() => undefined);
    const attempt: Attempt = {
      pid: 0,
      version: "",
      drainMs,
      reason: null,
      outcome,
      step: "started",
      watch: null,
      pausing: Promise.resolve(),
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

  /** Rolls back. */
  async #fall(attempt: Attempt, why: string): Promise<void> {
    if (attempt.step === "over") return;
    const { step } = attempt;
    this.#close(attempt);
    const { log } = this.#old;
    let reason = attempt.reason ?? why;
    const problem = await this.#rollBack(attempt, step).catch((error: unknown) =>
      error instanceof Error ? error.message : String(error),
    );
    if (problem !== null) {
      log.error("the gateway serves, but its configuration cannot be changed until a restart", {
        reason: problem,
      });
      reason += `; the old process continues to serve, but rejects changes until a restart: ${problem}`;
    }
    log.error("the upgrade failed; the old process continues to serve", { reason });
    this.#old.service.notify("READY=1");
    this.#attempt = null;
    attempt.outcome.reject(new ApiError(409, reason));
  }

  async #rollBack(attempt: Attempt, step: Attempt["step"]): Promise<string | null> {
    if (attempt.pid !== 0) {
      kill(attempt.pid);
      const end = performance.now() + GONE_MS;
      while (isAlive(attempt.pid) && performance.now() < end) await Bun.sleep(10);
    }
    if (step === "started") return null;
    // The API still serves reads, whatever is wrong with the data directory.
    await attempt.pausing.catch(() => undefined);
    try {
      return await this.#old.resume();
    } finally {
      if (step === "released") this.#old.openManagement();
    }
  }
}

const busy = () => new ApiError(409, "an upgrade is already in progress");

/** Refuses where the end of this process would end the new one too. */
function refuseWhereBound(service: ServiceManager): void {
  if (process.pid === 1 || CONTAINER_INITS.includes(parentName()))
    throw new ApiError(
      400,
      "the gateway is the main process of a container, which ends with it: replace the container instead",
    );
  const { INVOCATION_ID: invocation, NOTIFY_SOCKET: socket } = process.env;
  if (socket === undefined && invocation !== undefined && process.ppid === 1)
    throw new ApiError(
      400,
      "the gateway is a systemd service without permission to change its main process: its unit needs NotifyAccess=all",
    );
  if (socket !== undefined && !service.isThere)
    throw new ApiError(
      400,
      "the gateway is a systemd service, but systemd cannot be notified of its new main process",
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
    // It has ended, or belongs to another user.
  }
}
