// The command `version`, and the version of the program itself; knows nothing else.
import manifest from "../../package.json" with { type: "json" };
import type { Command } from "./command.ts";
import { parseFlags } from "./flags.ts";

export const version: string = manifest.version;

export const versionCommand: Command = {
  name: "version",
  summary: "Show the version",
  flags: [],
  run(argv, { env, print }) {
    parseFlags([], argv, env);
    print(`sluice ${version} (Bun ${Bun.version}, ${process.platform} ${process.arch})\n`);
    return Promise.resolve(0);
  },
};
