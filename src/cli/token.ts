// The command `token`: creates the admin token for automation; knows neither tokens nor sockets.
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  { name: "rotate", value: null, description: "Replace an existing token" },
];

export function createTokenCommand(openOffline: OpenOffline): Command {
  return {
    name: "token",
    summary: "Create the admin token for automation and print it once",
    details:
      "The gateway stores only its SHA-256. It cannot show an existing token again, only replace it with --rotate. Run it on\n" +
      "the machine of the data directory, as the user who owns the directory, whether the gateway runs or not.",
    flags,
    run(argv, { env, print }) {
      const given = parseFlags(flags, argv, env);
      const rotate = given.has("rotate");
      return runLocally(openOffline, given, {
        call: () => Promise.resolve({ operation: "issueToken", input: { rotate } }),
        show: ({ token, fingerprint, replaced }) => {
          print(`${token}\n`);
          const before = replaced ? "; the previous one is invalid now" : "";
          process.stderr.write(`This is the admin token (fingerprint ${fingerprint})${before}.\n`);
        },
      });
    },
  };
}
