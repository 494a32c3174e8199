// The command `plugin`: creates, checks and tests plugins for --plugins-dir; starts no gateway itself.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { suggestion } from "../model/suggestion.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import { NAME } from "../plugin-directory/definition.ts";
import type { PluginFileView } from "../control/watched-plugins.ts";
import type { Command, CommandContext } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { CommandError } from "./management-client.ts";
import harness from "./plugin-template/harness.txt" with { type: "text" };
import template from "./plugin-template/plugin.txt" with { type: "text" };
import testTemplate from "./plugin-template/test.txt" with { type: "text" };
import { pluginsDirFlag, withDirectory } from "./plugins-dir.ts";
import { thisProgram } from "./upgrade.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [{ ...pluginsDirFlag, fallback: "./plugins" }];

export interface PluginCommandParts {
  /** Entry of the thread that reads plugins. */
  readonly url: URL;
  /** The built-in plugins, whose names are taken. */
  readonly catalogue: ReadonlyMap<string, AnyPlugin>;
}

interface Call extends Pick<CommandContext, "print"> {
  readonly directory: string;
  readonly name: string | null;
  readonly parts: PluginCommandParts;
}

const actions: Readonly<Record<string, (call: Call) => Promise<number>>> = {
  new: create,
  check,
  test: runTests,
};

export const createPluginCommand = (parts: PluginCommandParts): Command => ({
  name: "plugin",
  summary: "Create, check and test plugins of your own, which serve --plugins-dir loads",
  usage: "new NAME | check | test [NAME]",
  details:
    "new    writes a plugin with a test into a folder of the directory\n" +
    "check  loads each plugin of the directory as the gateway would, and reports file, line and phase of errors\n" +
    "test   runs the tests (*.test.ts) of the directory, or of one plugin, against gateways of this program; Bun is not needed",
  flags,
  async run(argv, { env, print }) {
    const isFlag = argv.findIndex((word) => word.startsWith("--"));
    const [action = "", name = null, ...more] = isFlag === -1 ? argv : argv.slice(0, isFlag);
    const given = parseFlags(flags, isFlag === -1 ? [] : argv.slice(isFlag), env);
    const run = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (run === undefined || more.length > 0)
      throw new UsageError(
        `the command is one of: new NAME, check, test [NAME]${suggestion(action, Object.keys(actions))}`,
      );
    const directory = resolve(given.get("plugins-dir") ?? "./plugins");
    return await run({ directory, name, parts, print });
  },
});

async function create({ directory, name, parts, print }: Call): Promise<number> {
  if (name === null || !NAME.test(name))
    throw new UsageError("NAME must consist of lower-case letters, digits and hyphens");
  if (parts.catalogue.has(name)) throw new UsageError(`the gateway has a plugin "${name}" already`);
  const folder = join(directory, name);
  if (existsSync(folder) || existsSync(`${folder}.ts`) || existsSync(`${folder}.js`))
    throw new UsageError(`${folder} exists already`);
  // Whatever the umask: the gateway loads only what no other user can change.
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  for (const [file, text] of [
    ["index.ts", template],
    ["index.test.ts", testTemplate],
  ] as const) {
    const path = join(folder, file);
    writeFileSync(path, text.replaceAll("NAME", name), { flag: "wx" });
    chmodSync(path, 0o644);
    print(`${path}\n`);
  }
  return 0;
}

async function check({ directory, parts, print }: Call): Promise<number> {
  const { url, catalogue } = parts;
  const opened = await withDirectory(catalogue, { directory, url })
    // The message names the path.
    .catch((error: unknown) => {
      print(`${(error as Error).message}\n`);
      return null;
    });
  if (opened === null) return 1;
  const { plugins, problems } = opened.view;
  for (const problem of problems) print(`${problem}\n`);
  for (const plugin of plugins) print(`${lineOf(plugin)}\n`);
  if (plugins.length === 0) print(`${directory} has no plugins\n`);
  return problems.length > 0 || plugins.some(({ problem }) => problem !== null) ? 1 : 0;
}

/** What became of a file, one line. */
export function lineOf({ name, file, hash, problem }: PluginFileView): string {
  if (problem === null) return `${file}: ${name} can be loaded, sha256 ${hash}`;
  const line = problem.line === null ? "" : `:${problem.line}`;
  return `${problem.file ?? file}${line}: ${problem.phase}: ${problem.message}`;
}

/** Bun's own 5 s are less than a gateway takes to start on a busy machine. */
const TEST_TIMEOUT_MS = 60_000;

async function runTests({ directory, name }: Call): Promise<number> {
  const scratch = mkdtempSync(join(tmpdir(), "sluice-plugin-"));
  try {
    const preload = join(scratch, "preload.ts");
    writeFileSync(join(scratch, "harness.ts"), harness);
    writeFileSync(preload, PRELOAD);
    const tests = name === null ? directory : join(directory, name);
    if (!existsSync(tests)) throw new CommandError(`${tests}: does not exist`);
    const words = ["test", `--timeout=${TEST_TIMEOUT_MS}`, "--preload", preload, tests];
    const run = Bun.spawn([process.execPath, ...words], {
      cwd: directory,
      // The executable is Bun as well; the tests get the program that they start.
      env: {
        ...process.env,
        BUN_BE_BUN: "1",
        SLUICE_PLUGIN_TEST: JSON.stringify(thisProgram()),
      },
      stdio: ["inherit", "inherit", "inherit"],
    });
    return (await run.exited) === 0 ? 0 : 1;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

const PRELOAD = `Bun.plugin({
  name: "@sluice/plugin/test",
  setup(build) {
    build.module("@sluice/plugin/test", async () => ({
      loader: "object",
      exports: await import(import.meta.dir + "/harness.ts"),
    }));
  },
});
`;
