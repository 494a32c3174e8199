// A directory of plugins for tests, and the source of a plugin in it.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface PluginSource {
  /** Of the response header `x-own`. Default: `one`. */
  readonly word?: string;
  /** Statements before the end of `access`. */
  readonly access?: string;
  /** Statements at the beginning of `create`. */
  readonly create?: string;
  /** More members of the definition: `onError: "closed",`. */
  readonly members?: string;
  /** At the top of the file. */
  readonly head?: string;
}

/** A plugin with a setting `word`, which may not be `bad`, for every request. */
export const pluginSource = (name: string, source: PluginSource = {}): string => {
  const { word = "one", access = "", create = "", members = "", head = "" } = source;
  return `${head}
import { config, definePlugin, httpScopes, reject, secret, stays, t } from "@sluice/plugin";

interface Seen { readonly path: string }

export default definePlugin({
  name: "${name}",
  summary: "A plugin of a test",
  description: "Adds a header to every response.",
  group: "content",
  order: 500,
  phases: ["access", "response"],
  scopes: httpScopes,
  config: config({
    word: t.String({ default: "none", maxLength: 8, description: "A word" }),
    key: t.Optional(stays("it is not used", secret({ description: "A secret" }))),
  }),
  example: { word: "none" },
  onError: "closed",
  check: ({ word }) => (word === "bad" ? [{ path: "word", message: "must not be bad" }] : []),
  ${members}
  create(own, kit) {
    ${create}
    return {
      access(context) {
        const seen: Seen = { path: context.path };
        if (seen.path === "/refused") return reject(403, "own.refused", { detail: "refused by a file" });
        ${access}
        return undefined;
      },
      response(_, response) {
        response.setHeader("x-own", "${word} " + own.word);
      },
    };
  },
});
`;
};

export class PluginFiles {
  readonly path = mkdtempSync(join(tmpdir(), "sluice-plugins-"));

  /** Writes a file in one step. */
  write(name: string, text: string): void {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    // A name that the gateway does not take for a plugin.
    const next = join(this.path, ".next");
    writeFileSync(next, text, { mode: 0o644 });
    renameSync(next, path);
  }

  remove(name: string): void {
    rmSync(join(this.path, name), { recursive: true });
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}
