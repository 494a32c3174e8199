// The command `check`: validates a file or a data directory; changes nothing.
import { resolve } from "node:path";
import { checkDocument } from "../import/transfer/check.ts";
import { Draft } from "../control/draft.ts";
import { fieldChecks } from "../control/field-checks.ts";
import { describeProblem } from "../control/reference.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { compile } from "../snapshot/compile.ts";
import { StoreError } from "../store/error.ts";
import { inspectStore } from "../store/inspect.ts";
import type { Command } from "./command.ts";
import { readFileSource } from "./document-file.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { reportingErrors } from "./management-client.ts";
import { takeOptionalOperand } from "./operands.ts";
import { lineOf } from "./plugin.ts";
import { pluginsDirFlag, withDirectory } from "./plugins-dir.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [dataDirFlag, pluginsDirFlag];

/** Only problems matter here, not the certificates of handshakes. */
const noCertificate = { cert: "", key: "" };

/** `builtIn`: the built-in plugins; `url`: entry of the thread that reads others. */
export const createCheck = (builtIn: PluginCatalogue, url: URL): Command => ({
  name: "check",
  summary: "Validate a file, or the configuration in a data directory, without serving it",
  usage: "[FILE]",
  details:
    "FILE is what export writes, YAML or JSON, and is checked by itself; - is standard input. Without it, every stored\n" +
    "object is checked as if the gateway started: fields, references, patterns, clashes between listeners. Nothing is\n" +
    "changed, and a gateway may be serving the directory meanwhile. Whether ports are free and targets answer is not\n" +
    "checked. Exit code 0: it can be served; 1: it cannot, and the output says why.",
  flags,
  async run(argv, { env, print }) {
    const { operand: file, rest } = takeOptionalOperand(flags, argv);
    const given = parseFlags(flags, rest, env);
    const flag = given.get("plugins-dir");
    const dataDir = resolve(given.get("data-dir") ?? "./data");
    const stored = file === null ? storedDirectory(dataDir) : null;
    const directory = flag === undefined ? stored : resolve(flag);
    const plugins =
      directory === null ? builtIn : await pluginsWith(builtIn, { directory, url, print });
    if (plugins === null) return 1;
    if (file !== null) return await reportingErrors(() => checkFile(file, { print, plugins }));
    const problems = findProblems(dataDir, { print, plugins });
    for (const problem of problems) print(`${problem}\n`);
    return problems.length === 0 ? 0 : 1;
  },
});

/** That of the settings; null: there is none. */
function storedDirectory(dataDir: string): string | null {
  try {
    return inspectStore(dataDir).config.settings.plugins_directory;
  } catch (error) {
    // It is reported where the rest is read.
    if (error instanceof StoreError) return null;
    throw error;
  }
}

/** Null: the directory cannot be used; the reason is printed. */
async function pluginsWith(
  builtIn: PluginCatalogue,
  from: { readonly directory: string; readonly url: URL } & Pick<CheckOptions, "print">,
): Promise<PluginCatalogue | null> {
  try {
    const { plugins, view } = await withDirectory(builtIn, from);
    // A broken plugin matters only when an instance uses it: then that is reported.
    for (const plugin of view.plugins)
      if (plugin.problem !== null) from.print(`${lineOf(plugin)}\n`);
    return plugins;
  } catch (error) {
    from.print(`plugins directory: ${(error as Error).message}\n`);
    return null;
  }
}

interface CheckOptions {
  readonly print: (text: string) => void;
  readonly plugins: PluginCatalogue;
}

async function checkFile(path: string, { print, plugins }: CheckOptions): Promise<number> {
  const { problems, counts } = await checkDocument(await readFileSource(path), plugins);
  for (const problem of problems) print(`${problem}\n`);
  if (problems.length > 0) return 1;
  const all = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  print(`${path} can be served: ${all.join(", ") || "nothing is in it"}\n`);
  return 0;
}

function findProblems(dataDir: string, { print, plugins }: CheckOptions): readonly string[] {
  try {
    const { config, revision } = inspectStore(dataDir);
    const context = {
      tls: noCertificate,
      checks: fieldChecks,
      managementAddresses: [],
      plugins,
      openSealed: () => "-",
      revision,
    };
    const result = compile(config, null, context);
    if ("issues" in result) {
      const draft = new Draft(config, () => "");
      return result.issues.map((issue) => describeProblem(issue, draft));
    }
    const counts = (["services", "targets", "routes", "listeners"] as const)
      .map((name) => `${name} ${config[name].size}`)
      .join(", ");
    print(`revision ${revision} can be served: ${counts}\n`);
    return [];
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return [error.message];
  }
}
