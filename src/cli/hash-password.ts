// The command `hash-password`: turns a password into what configuration files hold of it; knows no file and no user.
import { hashPassword } from "../crypto/password.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { readSecretLine } from "./secret-line.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [];

export const hashPasswordCommand: Command = {
  name: "hash-password",
  summary: "Print the hash of a password, for configuration files",
  details:
    "Asks for the password without showing it, or reads standard input up to the first line feed, and prints the hash for\n" +
    "`password_hash` of the plugin basic-auth (argon2id). The password is no argument, because other users of the machine\n" +
    "could read it in the list of processes. Needs no gateway.",
  flags,
  async run(argv, { env, print }) {
    parseFlags(flags, argv, env);
    const password = await readSecretLine("Password: ");
    if (password === "")
      throw new UsageError("the password is empty: type it, or give it on standard input");
    print(`${await hashPassword(password)}\n`);
    return 0;
  },
};
