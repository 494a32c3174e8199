// Reads the password files of nginx; knows no directive.
import { hashBasic } from "../../control/credential-secrets.ts";
import { passwordHashProblem } from "../../crypto/foreign-password.ts";
import type { NginxContext } from "./nginx.ts";

export interface User {
  readonly username: string;
  readonly password_hash: string;
}

/** The users of the file whose hashes the gateway supports; reports all others. `what` uses the file. */
export async function readUsers(
  path: string,
  what: string,
  { files, output, users: known }: NginxContext,
): Promise<readonly User[]> {
  const cached = known.get(path);
  if (cached !== undefined) return cached;
  const text = path.includes("$") ? null : files.read(path);
  const { report } = output;
  const found: User[] = [];
  const names = new Set<string>();
  if (text === null)
    report.omitted(
      what,
      "its file of users is not available: add the users to a plugin basic-auth",
    );
  for (const line of (text ?? "").split(/\r?\n/)) {
    if (line === "" || line.startsWith("#")) continue;
    const [username = "", rest = ""] = line.split(/:(.*)/s);
    const [secret = ""] = rest.split(":");
    // nginx takes the first line of a name.
    if (username === "" || secret === "" || names.has(username)) continue;
    names.add(username);
    const label = `user "${username}" of ${what}`;
    const [, plain] = /^\{PLAIN\}(.+)$/s.exec(secret) ?? [];
    const problem = plain === undefined ? passwordHashProblem(secret) : null;
    if (problem !== null) {
      report.omitted(label, `its password ${problem}: set the password again`);
      continue;
    }
    const hash = plain === undefined ? secret : await hashBasic(plain, null);
    found.push({ username, password_hash: hash });
  }
  known.set(path, found);
  return found;
}
