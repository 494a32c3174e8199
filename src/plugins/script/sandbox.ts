// Runs one script: restarts its machine after errors, and the engine when it broke; knows no request.
import {
  BrokenEngine,
  type Engine,
  loadEngine,
  Machine,
  type MachineOptions,
  ScriptError,
} from "./engine.ts";
import type { HandlerName } from "./source.ts";

/** Delay before another attempt to load an engine. */
const PAUSE_MS = 1000;
/** Running out of memory after fewer runs means that the script needs more than its limit. */
const MANY_RUNS = 10;

export class Sandbox {
  readonly #options: MachineOptions;
  #engine: Engine | null;
  #machine: Machine | null = null;
  #isLoading = false;
  #isClosed = false;
  #pausedUntil = 0;
  #runs = 0;
  /** Runs before a machine is replaced, because the engine collects cyclic garbage too late. */
  #lasts = Number.POSITIVE_INFINITY;

  private constructor(engine: Engine, options: MachineOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#machine = new Machine(engine, options);
  }

  /** Throws a ScriptError when the script does not start. */
  static async start(options: MachineOptions): Promise<Sandbox> {
    return new Sandbox(await loadEngine(options.memoryMb), options);
  }

  has(name: HandlerName): boolean {
    return this.#machine?.has(name) === true;
  }

  /**
   * Throws an Error with a message when the handler throws, exceeds a limit, or cannot run now. `canRepeat`: whether the failed
   * run had no visible effect.
   */
  run(name: HandlerName, canRepeat: () => boolean): void {
    if (this.#runs >= this.#lasts) this.#discard();
    const machine = this.#ready();
    this.#runs += 1;
    try {
      machine.run(name);
    } catch (error) {
      const runs = this.#runs;
      if (error instanceof BrokenEngine) this.#drop();
      else if (!(error instanceof ScriptError) || error.isSpent) this.#discard();
      if (!(error instanceof ScriptError) || !error.isOutOfMemory || runs < MANY_RUNS) throw error;
      // Garbage of earlier runs has filled the memory.
      this.#lasts = Math.floor(runs / 2);
      if (!canRepeat()) throw error;
      this.run(name, () => false);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#discard();
    this.#engine = null;
  }

  #ready(): Machine {
    if (this.#machine !== null) return this.#machine;
    if (this.#engine === null) {
      void this.#reload();
      throw new Error("the script is restarting");
    }
    try {
      this.#machine = new Machine(this.#engine, this.#options);
      return this.#machine;
    } catch (error) {
      // A half-created machine would leak: use another engine.
      this.#engine = null;
      throw error;
    }
  }

  #drop(): void {
    this.#machine = null;
    this.#engine = null;
    this.#runs = 0;
  }

  #discard(): void {
    const machine = this.#machine;
    this.#machine = null;
    this.#runs = 0;
    try {
      machine?.dispose();
    } catch {
      this.#engine = null;
    }
  }

  async #reload(): Promise<void> {
    if (this.#isLoading || this.#isClosed || performance.now() < this.#pausedUntil) return;
    this.#isLoading = true;
    this.#pausedUntil = performance.now() + PAUSE_MS;
    try {
      const engine = await loadEngine(this.#options.memoryMb);
      if (!this.#isClosed) this.#engine = engine;
    } catch {
      // The next request after the pause tries again.
    } finally {
      this.#isLoading = false;
    }
  }
}
