// The command `token`: makes the admin token for automation; knows neither tokens nor sockets.
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  { name: "rotate", value: null, description: "Replace the token that is there already" },
];

export function createTokenCommand(openOffline: OpenOffline): Command {
  return {
    name: "token",
    summary: "Make the admin token for automation and print it once",
    details:
      "Only its SHA-256 is kept. One that is there already cannot be shown again, only replaced with --rotate. Works on\n" +
      "the machine that holds the data directory, for the user who owns it, whether a gateway serves it or not.",
    flags,
    run(argv, { env, print }) {
      const given = parseFlags(flags, argv, env);
      const rotate = given.has("rotate");
      return runLocally(openOffline, given, {
        call: () => Promise.resolve({ operation: "issueToken", input: { rotate } }),
        show: ({ token, fingerprint, replaced }) => {
          print(`${token}\n`);
          const before = replaced ? "; the one before is worth nothing any more" : "";
          process.stderr.write(`This is the admin token (fingerprint ${fingerprint})${before}.\n`);
        },
      });
    },
  };
}
