// Imports the bundled text of a plugin that is not part of the gateway; knows no directory and no plugin.
import type { AnyPlugin, PluginCode } from "./definition.ts";

/** The name under which plugins import the plugin kit. */
export const KIT_MODULE = "@sluice/plugin";

const provided = { isKit: false };

function provideKit(): void {
  if (provided.isKit) return;
  provided.isKit = true;
  Bun.plugin({
    name: KIT_MODULE,
    setup(build) {
      // Loaded at first use: threads without such plugins do not need all of the kit.
      build.module(KIT_MODULE, async () => ({
        loader: "object",
        exports: await import("./index.ts"),
      }));
    },
  });
}

/** The default export of the module. Throws what the module throws, with file and line of its sources. */
export async function importText(text: Uint8Array): Promise<unknown> {
  provideKit();
  // Not a file: what was read and hashed is what runs.
  const url = URL.createObjectURL(new Blob([text.slice()], { type: "text/javascript" }));
  try {
    return ((await import(url)) as { readonly default?: unknown }).default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Imports each text once in a thread, because the engine never releases a module. */
export class ImportedPlugins {
  readonly #byHash = new Map<string, Promise<AnyPlugin>>();

  get({ hash, text }: PluginCode): Promise<AnyPlugin> {
    const known = this.#byHash.get(hash);
    if (known !== undefined) return known;
    const imported = importText(new Uint8Array(text)) as Promise<AnyPlugin>;
    this.#byHash.set(hash, imported);
    imported.catch(() => this.#byHash.delete(hash));
    return imported;
  }
}

/** Where an error was thrown: `hello/deep.ts:7:13`; null: not in a plugin from a directory. */
export function placeOf(error: unknown): string | null {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  for (const line of stack.split("\n")) {
    const place = /\(?([^\s()]+\.[cm]?[jt]sx?:\d+:\d+)\)?$/.exec(line)?.[1];
    // Sources of the gateway have absolute paths, those of a plugin start in its directory.
    if (place !== undefined && !/^(?:\/|[a-z]+:)/.test(place)) return place;
  }
  return null;
}
