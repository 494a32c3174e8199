// The command `reset-admin-networks`: lets people in again whose address is refused; knows neither settings nor sockets.
import { expandNetworks, NETWORK_WORDS } from "./admin-networks.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import type { NetworksResult } from "../control/recovery.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "allow",
    value: "NETWORKS",
    description: `Keep the list and add these networks to it: ${NETWORK_WORDS}; may be given several times`,
    repeats: true,
  },
];

export function createResetAdminNetworks(openOffline: OpenOffline): Command {
  return {
    name: "reset-admin-networks",
    summary: "Let everybody reach the management API again whom admin_allowed_cidrs shuts out",
    details:
      "Empties settings.admin_allowed_cidrs, so that the networks of --admin-allow are in force again; who may do what is asked\n" +
      "as before. Where the gateway listens for other machines without --admin-allow, the list gets the private networks\n" +
      "(RFC 1918, ULA and loopback) instead. With --allow the list stays and gets longer. Works on the machine that holds the\n" +
      "data directory, for the user who owns it, whether a gateway serves it or not.",
    flags,
    run(argv, { env, print }) {
      const given = parseFlags(flags, argv, env);
      const allow = expandNetworks(given.all("allow"));
      return runLocally(openOffline, given, {
        call: () => Promise.resolve({ operation: "resetNetworks", input: { allow } }),
        show: (result) => {
          print(result.networks.map((network) => `${network}\n`).join(""));
          process.stderr.write(`${inWords(result)}\n`);
        },
      });
    },
  };
}

function inWords({ networks, before, restart_needed: mustRestart }: NetworksResult): string {
  if (networks.length === 0 && before.length === 0) return "Nothing to do: no address was refused.";
  if (networks.length > 0 && mustRestart)
    return "These networks may use the management API once the gateway is restarted; until then it listens on loopback.";
  if (networks.length > 0)
    return "These networks may use the management API now, at once and without a restart.";
  return `Any address may use the management API now, no longer only ${before.join(", ")}.`;
}
