// The flags of the first admin, and its creation at the start of a gateway without users; stores nothing.
import { readFileSync } from "node:fs";
import { type FirstAdmin, makeFirstAdmin } from "../auth/first-admin.ts";
import { decode } from "../model/decode.ts";
import { ApiError } from "../model/error.ts";
import { userInput } from "../model/user.ts";
import { fileProblem } from "../model/file-problem.ts";
import type { Flag, Flags } from "./flags.ts";
import { StartError } from "./start-error.ts";
import { UsageError } from "./usage-error.ts";

export const firstAdminFlags: readonly Flag[] = [
  {
    name: "admin-email",
    value: "EMAIL",
    description:
      "Create an admin with this e-mail address, before the management API listens, while no user exists",
  },
  {
    name: "admin-password-file",
    value: "FILE",
    description:
      "File with the password of --admin-email, read only when the admin is created; without it the log shows a generated password once",
  },
];

export interface FirstAdminOptions {
  readonly email: string;
  /** Null: generate a password. */
  readonly passwordFile: string | null;
}

/** Null without --admin-email. Throws a UsageError that names the flag. */
export function decodeFirstAdmin(given: Flags): FirstAdminOptions | null {
  const email = given.get("admin-email");
  const passwordFile = given.get("admin-password-file") ?? null;
  if (email === undefined) {
    if (passwordFile === null) return null;
    throw new UsageError("--admin-password-file needs --admin-email as well");
  }
  try {
    decode(userInput, { email, name: email, role: "admin" });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new UsageError(`--admin-email: must be an e-mail address, not "${email}"`);
  }
  return { email, passwordFile };
}

/** Throws a StartError that names the flag and never holds the password. */
export async function firstAdminOf(
  { email, passwordFile }: FirstAdminOptions,
  at: string,
): Promise<FirstAdmin> {
  try {
    const password = passwordFile === null ? null : passwordIn(passwordFile);
    return await makeFirstAdmin({ email, password }, at);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new StartError(`--admin-password-file: ${error.message}`, { cause: error });
  }
}

/** Without the line feed that editors and `echo` add. */
function passwordIn(path: string): string {
  const text = textOf(path).replace(/\r?\n$/, "");
  if (text === "") throw new StartError(`--admin-password-file: ${path} is empty`);
  return text;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new StartError(`--admin-password-file: ${path} cannot be read: ${fileProblem(error)}`);
  }
}
