// Reads the password files of nginx; knows no directive.
import { hashBasic } from "../../control/credential-secrets.ts";
import type { NginxContext } from "./nginx.ts";

export interface User {
  readonly username: string;
  readonly password_hash: string;
}

/** Hashes that the plugin basic-auth verifies. */
const SUPPORTED = /^\$(?:2[aby]\$(?:0[4-9]|1[0-4])\$[A-Za-z0-9./]{53}$|argon2id\$)/;

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/^\$apr1\$/, "MD5 (apr1)"],
  [/^\$1\$/, "MD5"],
  [/^\$5\$/, "SHA-256"],
  [/^\$6\$/, "SHA-512"],
  [/^\$y\$/, "yescrypt"],
  [/^\$2[aby]\$/, "bcrypt of another cost"],
  [/^\{S?SHA\}/, "SHA-1"],
];

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
  if (text === null)
    report.omitted(
      what,
      "its file of users is not available: add the users to a plugin basic-auth",
    );
  for (const line of (text ?? "").split(/\r?\n/)) {
    if (line === "" || line.startsWith("#")) continue;
    const [username = "", rest = ""] = line.split(/:(.*)/s);
    const [secret = ""] = rest.split(":");
    if (username === "" || secret === "") continue;
    const label = `user "${username}" of ${what}`;
    const hash = await hashOf(secret);
    if (hash === null) {
      const kind = KINDS.find(([pattern]) => pattern.test(secret))?.[1] ?? "crypt";
      report.omitted(label, `the hash is of the kind ${kind}: set the password again`);
      continue;
    }
    // nginx takes the first line of a name.
    if (!found.some((user) => user.username === username))
      found.push({ username, password_hash: hash });
  }
  known.set(path, found);
  return found;
}

async function hashOf(secret: string): Promise<string | null> {
  if (SUPPORTED.test(secret)) return secret;
  const [, plain] = /^\{PLAIN\}(.+)$/s.exec(secret) ?? [];
  return plain === undefined ? null : await hashBasic(plain, null);
}
