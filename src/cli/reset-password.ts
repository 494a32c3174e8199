// The command `reset-password`: restores the access of a locked-out user; knows neither users nor sockets.
import { type Role, roles } from "../model/user.ts";
import { suggestion } from "../model/suggestion.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { takeOperand } from "./operands.ts";
import { firstLine } from "./secret-line.ts";
import { dataDirFlag } from "./serve.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "stdin",
    value: null,
    description: "Read the new password from standard input, up to the first line feed",
  },
  {
    name: "role",
    value: "ROLE",
    description: `Give the user this role: ${roles.join(", ")}`,
    choices: roles,
  },
];

export function createResetPassword(openOffline: OpenOffline): Command {
  return {
    name: "reset-password",
    summary: "Reset the password of a user",
    usage: "EMAIL",
    details:
      "Generates a password and prints it once, unless --stdin provides one. Enables the user, removes the second factor\n" +
      "and ends every session of the user. Run it on the machine of the data directory, as the user who owns the\n" +
      "directory, whether the gateway runs or not.",
    flags,
    run(argv, { env, print }) {
      const { operand: email, rest } = takeOperand(flags, argv, "EMAIL");
      const given = parseFlags(flags, rest, env);
      const role = decodeRole(given.get("role"));
      const reads = given.has("stdin");
      return runLocally(openOffline, given, {
        call: async () => ({
          operation: "resetPassword",
          input: { email, role, password: reads ? await firstLine(Bun.stdin.stream()) : null },
        }),
        show: (user) => {
          if (user.password !== null) print(`${user.password}\n`);
          const second = user.had_second_factor ? ", without the second factor," : "";
          process.stderr.write(
            `${user.email} can sign in as ${user.role}${second} with the new password; all sessions were ended.\n`,
          );
        },
      });
    },
  };
}

function decodeRole(text: string | undefined): Role | null {
  if (text === undefined) return null;
  const role = roles.find((word) => word === text);
  if (role === undefined)
    throw new UsageError(
      `--role: must be one of ${roles.join(", ")}, not "${text}"${suggestion(text, roles)}`,
    );
  return role;
}
