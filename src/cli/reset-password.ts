// The command `reset-password`: lets a user in again who is locked out; knows neither users nor sockets.
import { type Role, roles } from "../model/user.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { type OpenOffline, runLocally } from "./local-command.ts";
import { takeOperand } from "./operands.ts";
import { dataDirFlag } from "./serve.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "stdin",
    value: null,
    description: "Read the new password from standard input, up to the first line feed",
  },
  { name: "role", value: "ROLE", description: `Give the user this role: ${roles.join(", ")}` },
];

/** Far more than a password may have. */
const MAX_INPUT_CHARACTERS = 4096;

export function createResetPassword(openOffline: OpenOffline): Command {
  return {
    name: "reset-password",
    summary: "Give a user a new password, whoever has forgotten what",
    usage: "EMAIL",
    details:
      "A password is made up and printed once, unless --stdin hands one in. The user is enabled, the second factor is\n" +
      "removed and every session of the user ends. Works on the machine that holds the data directory, for the user\n" +
      "who owns it, whether a gateway serves it or not.",
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
    throw new UsageError(`--role: must be one of ${roles.join(", ")}, not "${text}"`);
  return role;
}

async function firstLine(input: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of input) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n") || text.length > MAX_INPUT_CHARACTERS) break;
  }
  return (text.split("\n")[0] ?? "").replace(/\r$/, "").slice(0, MAX_INPUT_CHARACTERS);
}
