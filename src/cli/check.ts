// The command `check`: says whether a data directory could be served as it is; changes nothing.
import { resolve } from "node:path";
import { Draft } from "../control/draft.ts";
import { fieldChecks } from "../control/field-checks.ts";
import { describeProblem } from "../control/reference.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { compile } from "../snapshot/compile.ts";
import { StoreError } from "../store/error.ts";
import { inspectStore } from "../store/store.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [dataDirFlag];

/** Only the words of the problems matter here, not what a handshake would show. */
const noCertificate = { cert: "", key: "" };

/** `plugins`: all that the gateway has. */
export const createCheck = (plugins: PluginCatalogue): Command => ({
  name: "check",
  summary: "Check the configuration in a data directory, without serving it",
  details:
    "Every stored object is checked as if the gateway started: fields, references, patterns, clashes between listeners.\n" +
    "Nothing is changed, and a gateway may be serving the directory meanwhile. Whether ports are free and targets\n" +
    "answer is not checked. Exit code 0: it can be served; 1: it cannot, and the output says why.",
  flags,
  run(argv, { env, print }) {
    const dataDir = resolve(parseFlags(flags, argv, env).get("data-dir") ?? "./data");
    const problems = findProblems(dataDir, { print, plugins });
    for (const problem of problems) print(`${problem}\n`);
    return Promise.resolve(problems.length === 0 ? 0 : 1);
  },
});

function findProblems(
  dataDir: string,
  { print, plugins }: { readonly print: (text: string) => void; readonly plugins: PluginCatalogue },
): readonly string[] {
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
