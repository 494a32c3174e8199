// Reads the passphrase of an encrypted export: never from the command line, which other users can read.
import type { Flag, Flags } from "./flags.ts";
import { CommandError, readText } from "./management-client.ts";

export const passphraseFlag: Flag = {
  name: "passphrase-file",
  value: "FILE",
  description: "File whose first line is the passphrase; default: SLUICE_PASSPHRASE",
};

/** Empty when there is none. */
export function passphraseOf(
  given: Flags,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const file = given.get("passphrase-file");
  const text =
    file === undefined
      ? (env["SLUICE_PASSPHRASE"] ?? "")
      : (readText(file).split(/\r?\n/)[0] ?? "");
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  throw new CommandError("the passphrase must hold printable ASCII characters only");
}

export const passphraseHeaders = (passphrase: string): Readonly<Record<string, string>> =>
  passphrase === "" ? {} : { "x-passphrase": passphrase };
