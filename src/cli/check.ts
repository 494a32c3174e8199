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
import { outputFlag, type PrintResult, resultPrinter } from "./output.ts";
import type { Command } from "./command.ts";
import { readFileSource } from "./document-file.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { reportingErrors } from "./management-client.ts";
import { takeOptionalOperand } from "./operands.ts";
import { lineOf } from "./plugin.ts";
import { pluginsDirFlag, withDirectory } from "./plugins-dir.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [dataDirFlag, pluginsDirFlag, outputFlag];

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
    "changed, and a gateway may be serving the directory meanwhile. Whether ports are free and targets respond is not\n" +
    "checked. Exit code 0: it can be served; 1: it cannot, and the output says why.",
  flags,
  async run(argv, { env, print }) {
    const { operand: file, rest } = takeOptionalOperand(flags, argv);
    const given = parseFlags(flags, rest, env);
    const show = resultPrinter(given, print);
    const flag = given.get("plugins-dir");
    const dataDir = resolve(given.get("data-dir") ?? "./data");
    const stored = file === null ? storedDirectory(dataDir) : null;
    const directory = flag === undefined ? stored : resolve(flag);
    const plugins =
      directory === null ? builtIn : await pluginsWith(builtIn, { directory, url, print });
    if (plugins === null) return 1;
    if (file !== null) return await reportingErrors(() => checkFile(file, { show, plugins }));
    const result = checkStored(dataDir, plugins);
    return showResult(result, { show });
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
  from: { readonly directory: string; readonly url: URL; readonly print: (text: string) => void },
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
  readonly show: PrintResult;
  readonly plugins: PluginCatalogue;
}

interface CheckResult {
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** What was checked: `revision 3`. */
  readonly what: string;
}

async function checkFile(path: string, { show, plugins }: CheckOptions): Promise<number> {
  const result = await checkDocument(await readFileSource(path), plugins);
  return showResult({ ...result, what: path }, { show });
}

function showResult(
  { problems, counts, what }: CheckResult,
  { show }: Pick<CheckOptions, "show">,
): number {
  const all = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  const right = `${what} can be served: ${all.join(", ") || "nothing is in it"}`;
  const lines = problems.length > 0 ? problems : [right];
  show({ problems, counts }, lines.map((line) => `${line}\n`).join(""));
  return problems.length === 0 ? 0 : 1;
}

function checkStored(dataDir: string, plugins: PluginCatalogue): CheckResult {
  const refused = (problems: readonly string[]) => ({ problems, counts: {}, what: dataDir });
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
      return refused(result.issues.map((issue) => describeProblem(issue, draft)));
    }
    const names = ["services", "targets", "routes", "listeners"] as const;
    const counts = Object.fromEntries(names.map((name) => [name, config[name].size]));
    return { problems: [], counts, what: `revision ${revision}` };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return refused([error.message]);
  }
}
