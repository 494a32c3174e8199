// QuickJS in WebAssembly with limited memory; knows no request.
import type {
  QuickJSContext,
  QuickJSHandle,
  QuickJSRuntime,
  QuickJSWASMModule,
} from "quickjs-emscripten-core";
import type { HostFunction, Plain } from "./host-functions.ts";
import { COUNTER, metered } from "./metered-wasm.ts";
import { PRELUDE } from "./prelude.ts";
import type { HandlerName } from "./source.ts";

const PAGES_PER_MIB = 16;
// Minimum memory of the engine's build, most of it stack and free space.
const FIRST_PAGES = 256;
// Allocated from the free space and never used, so that the rest is the script's limit. The engine's own limit does not work:
// compiled to WebAssembly it does not know the size of its allocations.
const BALLAST_BYTES = 11 * 1_048_576;
const STACK_BYTES = 256 * 1024;
/**
 * For statements outside of handlers. All workers run them at the same time and serve no requests meanwhile; the supervisor
 * restarts a worker that is unresponsive for seconds.
 */
const START_MS = 250;
/** Turns between checks of the clock: the work of some 50 milliseconds on a present machine, plus the timeout. */
const TURNS_PER_MS = 300_000;
const FEWEST_TURNS = 10_000_000;

const turnsFor = (ms: number) => FEWEST_TURNS + ms * TURNS_PER_MS;
const START_TURNS = turnsFor(50);

/** The compiled module; takes some 50 milliseconds, once. */
const code = lazily(async () => await WebAssembly.compile(metered(await wasm())));

/** Not a literal in `import`, or the bundler would add the unpacked file to the executable as well. */
const UNPACKED = "@jitl/quickjs-wasmfile-release-sync/wasm";

/** Packed in the executable, as a file of the package in a checkout without a build. */
async function wasm(): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const { packed } = await import("../../../dist/packed/quickjs.js");
    return new Uint8Array(Bun.zstdDecompressSync(packed));
  } catch (error) {
    const { code: reason } = error as { readonly code?: unknown };
    if (reason !== "ERR_MODULE_NOT_FOUND") throw error;
    return await Bun.file(Bun.resolveSync(UNPACKED, import.meta.dir)).bytes();
  }
}

function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make());
}

/** An engine with a work limit: QuickJS checks the time between steps of a script only, and one step can take minutes. */
export interface Engine {
  readonly quickJs: QuickJSWASMModule;
  /** Remaining turns of loops and calls; at 0 the engine traps. */
  readonly turns: WebAssembly.Global<"i32">;
}

/** Loads an engine; takes 25 to 50 milliseconds, mostly in other threads. */
export async function loadEngine(memoryMb: number): Promise<Engine> {
  const { newQuickJSWASMModuleFromVariant } = await import("quickjs-emscripten-core");
  const { default: variant } = await import("@jitl/quickjs-wasmfile-release-sync");
  const compiled = await code();
  let turns: WebAssembly.Global<"i32"> | null = null;
  const instantiateWasm = (
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance) => unknown,
  ) => {
    void WebAssembly.instantiate(compiled, imports).then((instance) => {
      turns = instance.exports[COUNTER] as WebAssembly.Global<"i32">;
      turns.value = START_TURNS;
      done(instance);
    });
    return {};
  };
  const wasmMemory = new WebAssembly.Memory({
    initial: FIRST_PAGES,
    maximum: FIRST_PAGES + memoryMb * PAGES_PER_MIB,
  });
  const quickJs = await newQuickJSWASMModuleFromVariant({
    ...variant,
    async importModuleLoader() {
      const imported = await variant.importModuleLoader();
      const inner = "default" in imported ? imported.default : imported;
      const load = typeof inner === "function" ? inner : inner.default;
      return async (options) => {
        // Its output on abort is part of the error.
        const silent = { printErr() {} };
        const module = await load({ ...options, ...silent, wasmMemory, instantiateWasm });
        if (module._malloc(BALLAST_BYTES) === 0)
          throw new Error("the engine has too little memory");
        return module;
      };
    },
  });
  if (turns === null) throw new Error("the engine has no counter");
  return { quickJs, turns };
}

const OUT_OF_MEMORY = "InternalError: out of memory";

const TOO_LONG = "the script took too long";

/** An error of the script; `isSpent`: the machine must not be used any more. */
export class ScriptError extends Error {
  readonly isSpent: boolean;
  readonly isOutOfMemory: boolean;

  constructor(message: string, isSpent: boolean) {
    super(message);
    this.isSpent = isSpent;
    this.isOutOfMemory = message === OUT_OF_MEMORY;
  }
}

/** The engine was stopped inside of a step: nothing in it may be used any more, not even for cleanup. */
export class BrokenEngine extends ScriptError {
  constructor() {
    super(TOO_LONG, true);
  }
}

export interface MachineOptions {
  /** The user's script as JavaScript. */
  readonly code: string;
  readonly memoryMb: number;
  readonly timeoutMs: number;
  readonly functions: Readonly<Record<string, HostFunction>>;
}

/** CPU time of this thread: on a busy machine a handler must not fail because other processes ran. */
class Stopwatch {
  readonly #end: number;
  readonly #timeoutMs: number;
  readonly #usedBefore = usedMs();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#end = performance.now() + timeoutMs;
  }

  isOver(): boolean {
    return performance.now() > this.#end && usedMs() - this.#usedBefore > this.#timeoutMs;
  }
}

function usedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** One context with the script. After an error with `isSpent` only `dispose` may be called. */
export class Machine {
  readonly #runtime: QuickJSRuntime;
  readonly #context: QuickJSContext;
  readonly #timeoutMs: number;
  readonly #turns: Engine["turns"];
  /** Turns between checks of the clock. */
  readonly #turnsAtOnce: number;
  readonly #handlers = new Map<string, QuickJSHandle>();
  readonly #call: QuickJSHandle;
  #clock = new Stopwatch(0);

  constructor({ quickJs, turns }: Engine, options: MachineOptions) {
    this.#turns = turns;
    this.#turns.value = START_TURNS;
    const runtime = quickJs.newRuntime();
    runtime.setMemoryLimit(options.memoryMb * 1_048_576);
    runtime.setMaxStackSize(STACK_BYTES);
    runtime.setInterruptHandler(() => {
      this.#turns.value = this.#turnsAtOnce;
      return this.#clock.isOver();
    });
    this.#runtime = runtime;
    this.#context = runtime.newContext();
    this.#timeoutMs = options.timeoutMs;
    this.#turnsAtOnce = turnsFor(options.timeoutMs);
    this.#clock = new Stopwatch(START_MS);
    try {
      this.#call = this.#prepare(options.functions);
      this.#load(options.code);
    } catch (error) {
      throw this.#turns.value <= 0 ? new BrokenEngine() : error;
    }
  }

  #prepare(functions: MachineOptions["functions"]): QuickJSHandle {
    const context = this.#context;
    const spend: HostFunction = () => {
      if (this.#clock.isOver()) throw new RangeError(TOO_LONG);
      return undefined;
    };
    const host = context.newObject();
    for (const [name, run] of Object.entries({ ...functions, spend })) {
      const handle = context.newFunction(name, (...args) =>
        this.#toGuest(run(...args.map((each) => this.#toHost(each)))),
      );
      context.setProp(host, name, handle);
      handle.dispose();
    }
    const make = this.#unwrap(context.evalCode(PRELUDE, "gateway"));
    const call = this.#unwrap(context.callFunction(make, context.undefined, host));
    make.dispose();
    host.dispose();
    return call;
  }

  #load(code: string): void {
    const context = this.#context;
    const module = this.#unwrap(context.evalCode(code, "script.ts", { type: "module" }));
    for (const name of ["onRequest", "onResponse", "onLog"] satisfies HandlerName[]) {
      const handler = context.getProp(module, name);
      if (context.typeof(handler) === "function") this.#handlers.set(name, handler);
      else handler.dispose();
    }
    module.dispose();
    if (this.#handlers.size === 0)
      throw new ScriptError(
        "the script must export functions, and cannot use top-level await",
        true,
      );
  }

  has(name: HandlerName): boolean {
    return this.#handlers.has(name);
  }

  /** Throws a ScriptError. */
  run(name: HandlerName): void {
    const handler = this.#handlers.get(name);
    if (handler === undefined) return;
    this.#clock = new Stopwatch(this.#timeoutMs);
    this.#turns.value = this.#turnsAtOnce;
    const context = this.#context;
    let problem: string;
    try {
      const result = this.#unwrap(context.callFunction(this.#call, context.undefined, handler));
      const isFine = context.typeof(result) === "undefined";
      problem = isFine ? "" : context.getString(result);
      result.dispose();
      if (isFine) return;
    } catch (error) {
      if (error instanceof ScriptError) throw error;
      if (this.#turns.value <= 0) throw new BrokenEngine();
      // The engine itself failed, for example by a stack overflow of its caller.
      throw new ScriptError(error instanceof Error ? error.message : "the engine failed", true);
    }
    throw new ScriptError(problem.slice(0, 500), problem === OUT_OF_MEMORY);
  }

  /** Throws when the engine cannot be used for another machine. */
  dispose(): void {
    this.#turns.value = START_TURNS;
    this.#call.dispose();
    for (const handler of this.#handlers.values()) handler.dispose();
    this.#context.dispose();
    this.#runtime.dispose();
  }

  /** Throws on an error, which the script did not catch. */
  #unwrap(result: ReturnType<QuickJSContext["evalCode"]>): QuickJSHandle {
    if (result.error === undefined) return result.value;
    const thrown: unknown = this.#context.dump(result.error);
    result.error.dispose();
    throw new ScriptError(wordsOf(thrown).slice(0, 500), true);
  }

  #toHost(handle: QuickJSHandle): Plain {
    const context = this.#context;
    switch (context.typeof(handle)) {
      case "string":
        return context.getString(handle);
      case "number":
        return context.getNumber(handle);
      case "undefined":
        return undefined;
      default:
        return null;
    }
  }

  #toGuest(value: Plain): QuickJSHandle {
    const context = this.#context;
    if (typeof value === "string") return context.newString(value);
    if (typeof value === "number") return context.newNumber(value);
    return value === null ? context.null : context.undefined;
  }
}

/** A script may throw anything. */
function wordsOf(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return `it threw ${String(thrown)}`;
  const { name, message } = thrown as { readonly name?: unknown; readonly message?: unknown };
  if (message === "interrupted") return TOO_LONG;
  return message === undefined ? "it threw a value that is no error" : `${name}: ${message}`;
}
