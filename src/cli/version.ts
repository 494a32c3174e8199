// The command `version`, and the version of the program itself; knows nothing else.
import manifest from "../../package.json" with { type: "json" };
import type { Command } from "./command.ts";
import { parseFlags } from "./flags.ts";

export const version: string = manifest.version;

/** The bundler inserts it into a release; the environment could claim anything. */
declare const SLUICE_COMMIT: string | null | undefined;

/** The commit of a release; null in a checkout. */
const commit: string | null = typeof SLUICE_COMMIT === "string" ? SLUICE_COMMIT : null;

export const versionCommand: Command = {
  name: "version",
  summary: "Show the version, and the commit of a release",
  flags: [],
  run(argv, { env, print }) {
    parseFlags([], argv, env);
    const made = commit === null ? "" : `, commit ${commit}`;
    print(`sluice ${version} (Bun ${Bun.version}, ${process.platform} ${process.arch}${made})\n`);
    return Promise.resolve(0);
  },
};
