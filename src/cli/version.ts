// The command `version`, and the version of the program itself; knows nothing else.
import manifest from "../../package.json" with { type: "json" };
import type { Command } from "./command.ts";
import { parseFlags } from "./flags.ts";

export const version: string = manifest.version;

/** Put in by the bundler when a release is made; a text in the environment could claim anything. */
declare const SLUICE_COMMIT: string | null | undefined;

/** Which commit a release was made from; null for what was built or started in a checkout. */
export const commit: string | null = typeof SLUICE_COMMIT === "string" ? SLUICE_COMMIT : null;

export const versionCommand: Command = {
  name: "version",
  summary: "Show the version, and of a release the commit that it was made from",
  flags: [],
  run(argv, { env, print }) {
    parseFlags([], argv, env);
    const made = commit === null ? "" : `, commit ${commit}`;
    print(`sluice ${version} (Bun ${Bun.version}, ${process.platform} ${process.arch}${made})\n`);
    return Promise.resolve(0);
  },
};
