// Both ends of the short-lived thread that reads a plugin: its code must not run beside the database.
import { createHash } from "node:crypto";
import type { LoadProblem } from "../control/watched-plugins.ts";
import { importText, placeOf } from "../pdk/plugin-code.ts";
import { bundlePlugin, PluginError, problem, type PluginSource } from "./bundle.ts";
import { plainDefinition, type PlainDefinition } from "./definition.ts";

interface ReadCommand extends PluginSource {
  readonly name: string;
}

/** A plugin as the thread has read it. */
export interface ReadPlugin {
  readonly kind: "read";
  /** SHA-256 of the text, hexadecimal. */
  readonly hash: string;
  readonly text: SharedArrayBuffer;
  readonly definition: PlainDefinition;
  /** Absolute paths of all files in the text. */
  readonly inputs: readonly string[];
}

type ReadEvent = ReadPlugin | { readonly kind: "refused"; readonly problem: LoadProblem };

interface ReaderScope {
  postMessage(event: ReadEvent): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ReadCommand>) => void): void;
}

/** Responds to one command; then the caller ends the thread. */
export function serveReader(scope: ReaderScope): void {
  scope.addEventListener("message", ({ data }) => {
    read(data).then(
      (event) => scope.postMessage(event),
      (error: unknown) => {
        const isFound = error instanceof PluginError;
        const found = isFound ? error.problem : problem("read", String(error));
        scope.postMessage({ kind: "refused", problem: found });
      },
    );
  });
}

async function read({ name, ...source }: ReadCommand): Promise<ReadPlugin> {
  const { text, inputs } = await bundlePlugin(source);
  const bytes = new TextEncoder().encode(text);
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  const exported = await importText(bytes).catch((error: unknown) => refuse("import", error));
  const hash = createHash("sha256").update(bytes).digest("hex");
  try {
    const definition = plainDefinition(exported, name);
    return { kind: "read", hash, text: shared, definition, inputs };
  } catch (error) {
    return refuse("definition", error);
  }
}

function refuse(phase: string, error: unknown): never {
  const message = error instanceof Error ? error.message : String(error);
  const [file = null, line = ""] = placeOf(error)?.split(":") ?? [];
  throw new PluginError({ phase, message, file, line: Number(line) || null }, error);
}

/** The code of a plugin may run for as long while it is read. */
const DEADLINE_MS = 15_000;

/** Reads a plugin in a thread of its own. Throws a PluginError. */
export async function readPlugin(
  url: URL,
  command: ReadCommand,
  deadlineMs = DEADLINE_MS,
): Promise<ReadPlugin> {
  const { promise, resolve, reject } = Promise.withResolvers<ReadEvent>();
  const fail = (message: string) => reject(new PluginError(problem("import", message)));
  const thread = new Worker(url);
  thread.addEventListener("message", ({ data }: MessageEvent<ReadEvent>) => resolve(data));
  thread.addEventListener("error", (event: ErrorEvent) => {
    event.preventDefault();
    fail(event.message);
  });
  thread.addEventListener("close", () => fail("the plugin has ended its thread"));
  const timer = setTimeout(() => fail(`not loaded within ${deadlineMs} ms`), deadlineMs);
  thread.postMessage(command);
  try {
    const event = await promise;
    if (event.kind === "refused") throw new PluginError(event.problem);
    return event;
  } finally {
    clearTimeout(timer);
    thread.terminate();
  }
}
