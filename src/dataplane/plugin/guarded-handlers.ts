// Handlers of a plugin from a directory: says which plugin runs, limits waits, and names phase and line of errors; knows no request.
import { type PluginHandlers, phaseHandlers } from "../../pdk/definition.ts";
import type { Outcome } from "../../pdk/response.ts";
import { closeSource } from "./response-draft.ts";
import { located, type RunningPlugin, useRunningCell } from "./running-plugin.ts";

export interface GuardOptions extends RunningPlugin {
  /** For a promise of a handler. */
  readonly timeoutMs: number;
  /** A handler has failed that cannot decide about its request. */
  readonly failed: (error: Error) => void;
}

type AnyHandler = (first: never, second: never) => unknown;

/** Handlers of phases in which a request can wait, and end. */
const WAITING: readonly string[] = ["preAuth", "auth", "access", "request"];

const HANDLERS = [
  ...WAITING,
  ...["stripIdentity", "authSkipped", "response", "log", "logBatch"],
  ...["connect", "disconnect", "close"],
] as readonly (keyof PluginHandlers)[];

/** The same handlers, guarded. Built-in plugins run without, at no cost. */
export function guardHandlers(handlers: PluginHandlers, options: GuardOptions): PluginHandlers {
  const waits = new Waits(options.timeoutMs);
  useRunningCell(options.running);
  const guarded: Record<string, unknown> = {};
  for (const name of HANDLERS) {
    const handler = handlers[name] as AnyHandler | undefined;
    if (handler === undefined) continue;
    const phase = phaseOf(name);
    guarded[name] = guard(handlers, handler, { ...options, phase, settle: settlerOf(name) });
  }
  return guarded as PluginHandlers;

  function settlerOf(name: keyof PluginHandlers): Settle {
    if (name === "close") return (outcome) => outcome;
    if (WAITING.includes(name)) return (outcome, phase) => waits.limit(outcome, phase);
    return (outcome, phase) => {
      // Nothing waits for it: without this an error would end the worker.
      outcome.catch((error: unknown) => options.failed(located(error, phase)));
      return undefined;
    };
  }
}

/** What becomes of a promise that a handler returns. */
type Settle = (outcome: Promise<Outcome>, phase: string) => Promise<Outcome> | undefined;

/** Runs for every request: without closures, which would cost more than the rest. */
function guard(
  handlers: PluginHandlers,
  handler: AnyHandler,
  {
    number,
    running: cell,
    phase,
    settle,
  }: GuardOptions & { readonly phase: string; readonly settle: Settle },
): AnyHandler {
  return (first, second) => {
    const before = cell[0] ?? 0;
    cell[0] = number;
    let outcome: unknown;
    try {
      outcome = handler.call(handlers, first, second);
    } catch (error) {
      cell[0] = before;
      throw located(error, phase);
    }
    cell[0] = before;
    if (outcome === undefined || !(outcome instanceof Promise)) return outcome;
    return settle(outcome as Promise<Outcome>, phase);
  };
}

/** Handlers that fail for the given reason in every phase, so that `on_error` decides. */
export function failingHandlers(phases: readonly string[], reason: string): PluginHandlers {
  const fail = () => {
    throw new Error(reason);
  };
  const names = phases.map((phase) => phaseHandlers[phase as keyof typeof phaseHandlers]);
  return Object.fromEntries(names.map((name) => [name, fail])) as PluginHandlers;
}

const phaseOf = (handler: string) =>
  Object.entries(phaseHandlers).find(([, name]) => name === handler)?.[0] ?? handler;

interface Wait {
  readonly until: number;
  readonly expire: () => void;
}

/** The promises of one instance. All have the same timeout, so that the first one expires first and one timer is enough. */
class Waits {
  readonly #timeoutMs: number;
  readonly #open = new Set<Wait>();
  #timer: Timer | null = null;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  limit(outcome: Promise<Outcome>, phase: string): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const wait: Wait = {
      until: performance.now() + this.#timeoutMs,
      expire: () => reject(new Error(`${phase}: no result within ${this.#timeoutMs} ms`)),
    };
    this.#open.add(wait);
    this.#timer ??= setTimeout(() => this.#expire(), this.#timeoutMs);
    outcome.then(
      (response) => {
        if (this.#open.delete(wait)) resolve(response);
        else if (response?.kind === "reply") closeSource(response.body);
      },
      (error: unknown) => {
        if (this.#open.delete(wait)) reject(located(error, phase));
      },
    );
    return promise;
  }

  #expire(): void {
    this.#timer = null;
    const now = performance.now();
    for (const wait of this.#open) {
      if (wait.until > now) {
        this.#timer = setTimeout(() => this.#expire(), wait.until - now);
        return;
      }
      this.#open.delete(wait);
      wait.expire();
    }
  }
}
