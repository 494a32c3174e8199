// The command `reset-admin-networks`: lets people in again whose address is refused; knows neither settings nor sockets.
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "allow",
    value: "CIDR",
    description: "Keep the list and add this network or address to it; may be given several times",
    repeats: true,
  },
];

export function createResetAdminNetworks(openOffline: OpenOffline): Command {
  return {
    name: "reset-admin-networks",
    summary: "Let everybody reach the management API again whom admin_allowed_cidrs shuts out",
    details:
      "Empties settings.admin_allowed_cidrs, so that the management API refuses nobody by address; who may do what is asked as\n" +
      "before. With --allow the list stays and gets longer. Works on the machine that holds the data directory, for the user\n" +
      "who owns it, whether a gateway serves it or not.",
    flags,
    run(argv, { env, print }) {
      const given = parseFlags(flags, argv, env);
      const allow = given.all("allow");
      return runLocally(openOffline, given, {
        call: () => Promise.resolve({ operation: "resetNetworks", input: { allow } }),
        show: ({ networks, before }) => {
          print(networks.map((network) => `${network}\n`).join(""));
          process.stderr.write(`${inWords(networks, before)}\n`);
        },
      });
    },
  };
}

function inWords(networks: readonly string[], before: readonly string[]): string {
  if (before.length === 0) return "Nothing to do: no address was refused.";
  if (networks.length > 0)
    return "These networks may use the management API now, at once and without a restart.";
  return `Any address may use the management API now, no longer only ${before.join(", ")}.`;
}
