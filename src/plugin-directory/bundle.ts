// Bundles the files of a plugin into one text with a source map; knows no definition.
import { realpathSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, relative, resolve } from "node:path";
import { readTrusted, requireTrustedSettings, trustedPath } from "../control/trusted-file.ts";
import type { LoadProblem } from "../control/watched-plugins.ts";
import { KIT_MODULE } from "../pdk/plugin-code.ts";

/** A problem of no known place. */
export const problem = (phase: string, message: string): LoadProblem => ({
  phase,
  message,
  file: null,
  line: null,
});

export class PluginError extends Error {
  readonly problem: LoadProblem;

  constructor(problem: LoadProblem, cause?: unknown) {
    super(problem.message, { cause });
    this.problem = problem;
  }
}

/** Why a plugin is not served. A change that creates its instances says so in the words of the trial of the supervisor. */
export function failureOf(error: Error): LoadProblem {
  if (error instanceof PluginError) return error.problem;
  const { message } = error;
  return problem(/: create (?:has|needs) /.test(message) ? "create" : "serve", message);
}

export interface Bundle {
  readonly text: string;
  /** Absolute paths of all files in it. */
  readonly inputs: readonly string[];
}

/** What becomes part of the text: other files would have to be read when the plugin runs. */
const IMPORTABLE = /\.(?:[cm]?[jt]s|[jt]sx|jsonc?|ya?ml|toml|txt)$/;
const NOT_IMPORTABLE = "only code, JSON, YAML, TOML and text can be imported";

/**
 * The parser refuses macros however they are written, instead of running a file that the bundler reads itself. An option of
 * `bun build` that the types lack; `macro-ban.test.ts` fails when it has no effect.
 */
const WITHOUT_MACROS = { macros: false };
const MACROS_MESSAGE = "Macros are disabled";

export interface PluginSource {
  readonly directory: string;
  /** Absolute path of the file with the definition. */
  readonly entry: string;
  /** Directories that no file of it may be in: the gateway writes there what others send. */
  readonly written: readonly string[];
}

/**
 * Imports resolve from the file; built-in modules of Bun and Node stay imports. Runs none of the code. Throws a PluginError, whose
 * message quotes only files of plugins.
 */
export async function bundlePlugin(source: PluginSource): Promise<Bundle> {
  const { directory, entry, written } = source;
  requireMention(source);
  const inputs: string[] = [];
  const problems: PluginError[] = [];
  let importsKit = false;
  const attempt = <T>(path: string, read: () => T): T => {
    try {
      return read();
    } catch (error) {
      problems.push(unreadable(path, directory, error));
      throw error;
    }
  };
  const load = ({ path, loader }: { readonly path: string; readonly loader: Bun.Loader }) =>
    attempt(path, () => {
      inputs.push(path);
      if (loader !== "text" && !IMPORTABLE.test(path))
        throw new Error(`${path}: ${NOT_IMPORTABLE}`);
      return { contents: readTrusted(path, { written }).toString("utf8"), loader };
    });
  // Before the bundler follows what is in these files, and for those beside files that it found.
  requireSettings(source, [entry]);
  const built = await Bun.build({
    ...WITHOUT_MACROS,
    entrypoints: [entry],
    target: "bun",
    format: "esm",
    sourcemap: "inline",
    // Without comments, which hold paths: the same files have one hash in each directory.
    minify: { whitespace: true },
    throw: false,
    plugins: [
      {
        name: "trusted files",
        setup(build) {
          build.onResolve({ filter: /^@sluice\/plugin$/ }, ({ importer }) => {
            importsKit ||= realpathSync(importer) === realpathSync(entry);
            return { path: KIT_MODULE, external: true };
          });
          build.onResolve({ filter: /^\.{0,2}\// }, ({ path, importer }) => {
            // The bundler follows links, so that `load` sees where they lead, not who may change them.
            const wanted = resolve(dirname(importer), path);
            if (importer !== "") attempt(wanted, () => trustedPath(dirname(wanted)));
            return undefined;
          });
          build.onLoad({ filter: /./ }, load);
        },
      },
    ],
  });
  const [output] = built.outputs;
  if (problems[0] !== undefined) throw problems[0];
  if (!built.success || output === undefined) throw problemOf(built.logs[0], directory);
  if (!importsKit) throw noPlugin(source);
  requireSettings(source, inputs);
  const text = await output.text();
  requireWhole(source, text);
  return { text: withPaths(text, directory), inputs };
}

/** An import attribute such as `sqlite` would leave a file to be read when the plugin runs. */
function requireWhole({ directory, entry }: PluginSource, text: string): void {
  for (const { kind, path } of new Bun.Transpiler({ loader: "js" }).scanImports(text))
    if (kind === "import-statement" && path !== KIT_MODULE && !isBuiltin(path))
      throw unreadable(entry, directory, new Error(`${path}: ${NOT_IMPORTABLE}`));
}

/** Files that say how the bundler resolves imports. */
function requireSettings({ directory, entry }: PluginSource, inputs: readonly string[]): void {
  try {
    requireTrustedSettings(inputs);
  } catch (error) {
    throw unreadable(entry, directory, error);
  }
}

/** Other files that lie on the machine are not bundled at all. */
function requireMention(source: PluginSource): void {
  const { directory, entry, written } = source;
  let text: string;
  try {
    text = readTrusted(entry, { written }).toString("utf8");
  } catch (error) {
    throw unreadable(entry, directory, error);
  }
  if (!text.includes(KIT_MODULE)) throw noPlugin(source);
}

function unreadable(path: string, directory: string, error: unknown): PluginError {
  const { message } = error as Error;
  const file = relative(directory, path);
  return new PluginError({ phase: "read", message, file, line: null }, error);
}

/** An import of types only is not in the bundled text. */
const noPlugin = ({ directory, entry }: PluginSource) =>
  new PluginError({
    phase: "bundle",
    message: `is no plugin: the file must import definePlugin from ${KIT_MODULE}`,
    file: relative(directory, entry),
    line: null,
  });

function problemOf(
  log: { readonly message: string; readonly position: BuildMessage["position"] } | undefined,
  directory: string,
): PluginError {
  const position = log?.position ?? null;
  return new PluginError({
    phase: "bundle",
    message:
      log?.message === MACROS_MESSAGE
        ? "macros are not run: import the function without the type macro"
        : (log?.message ?? "the files could not be bundled"),
    file: position === null ? null : relative(directory, resolve(position.file)),
    line: position === null || position.line < 1 ? null : position.line,
  });
}

const MAP = "//# sourceMappingURL=data:application/json;base64,";
/** A hash of paths, before the map and in it. */
const DEBUG_ID = /\/\/# debugId=[0-9A-F]+\n$/;

/**
 * The map with paths relative to the directory, as errors will name them: the bundler's depend on where the process runs. What is left
 * of the place is the value of `__dirname` and `__filename` in CommonJS files that use them.
 */
function withPaths(text: string, directory: string): string {
  const at = text.lastIndexOf(MAP);
  if (at === -1) return text;
  const end = text.indexOf("\n", at);
  const encoded = text.slice(at + MAP.length, end === -1 ? undefined : end);
  const map = JSON.parse(Buffer.from(encoded, "base64").toString()) as {
    sources: string[];
    sourcesContent: string[];
    debugId?: string;
  };
  delete map.debugId;
  map.sources = map.sources.map((source) => relative(directory, resolve(source)));
  // Only names and lines are wanted, and every worker holds the text. Without the member Bun ignores the map.
  map.sourcesContent = map.sources.map(() => "");
  return (
    text.slice(0, at).replace(DEBUG_ID, "") +
    MAP +
    Buffer.from(JSON.stringify(map)).toString("base64")
  );
}
