// Keeps one script running: starts its machine anew when it went wrong, and another engine when that broke; knows no request.
import {
  BrokenEngine,
  type Engine,
  loadEngine,
  Machine,
  type MachineOptions,
  ScriptError,
} from "./engine.ts";
import type { HandlerName } from "./source.ts";

/** So long nobody tries again when an engine could not be made, or broke. */
const PAUSE_MS = 1000;
/** A machine whose memory is full after fewer runs has a script that needs more than it may have. */
const MANY_RUNS = 10;

export class Sandbox {
  readonly #options: MachineOptions;
  #engine: Engine | null;
  #machine: Machine | null = null;
  #isLoading = false;
  #isClosed = false;
  #pausedUntil = 0;
  #runs = 0;
  /** So many runs a machine lasts; the engine notices too late what objects that refer to each other leave behind. */
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
   * Throws an error in words when the handler throws, takes too long or too much, or cannot run now. `canRepeat`: whether
   * nobody has seen yet that it ran.
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
      // What earlier runs left behind has filled the memory.
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
      throw new Error("the script is being started anew");
    }
    try {
      this.#machine = new Machine(this.#engine, this.#options);
      return this.#machine;
    } catch (error) {
      // Whatever was made halfway stays in there: take another engine.
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
