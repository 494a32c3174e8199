// The command `reset-admin-networks`: restores the access of locked-out networks; knows neither settings nor sockets.
import { expandNetworks, NETWORK_WORDS } from "./admin-networks.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import type { NetworksResult } from "../auth/recovery.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "allow",
    value: "NETWORKS",
    description: `Add these networks to the list instead: ${NETWORK_WORDS}; repeatable`,
    repeats: true,
  },
];

export function createResetAdminNetworks(openOffline: OpenOffline): Command {
  return {
    name: "reset-admin-networks",
    summary: "Restore access to the management API after a lockout by admin_allowed_cidrs",
    details:
      "Empties settings.admin_allowed_cidrs, so that --admin-allow applies again; authentication and roles stay unchanged.\n" +
      "If the gateway listens for other machines without --admin-allow, the command sets the private networks\n" +
      "(RFC 1918, ULA and loopback) instead. With --allow it extends the list. Run it on the machine of the data directory,\n" +
      "as the user who owns the directory, whether the gateway runs or not.",
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
  if (networks.length === 0 && before.length === 0)
    return "Nothing to do: every address is allowed.";
  if (networks.length > 0 && mustRestart)
    return "After a restart these networks may use the management API; until then it listens on loopback.";
  if (networks.length > 0)
    return "These networks may use the management API now, without a restart.";
  return `Every address may use the management API now, not only ${before.join(", ")}.`;
}
