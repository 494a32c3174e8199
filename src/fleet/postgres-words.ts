// What a refusal of PostgreSQL means to an operator; asks nothing.

/** SQLSTATE codes of refusals that an operator can mend, or their classes. */
const MEANINGS: Readonly<Record<string, string | ((message: string) => string)>> = {
  // With passwords the server does not tell an unknown user from a wrong one.
  "28P01": (message) =>
    `it refuses the password of user ${namedIn(message)}, or has no such user: check --store-password-file, or set the password there with alter role`,
  "28000": (message) =>
    /^role /.test(message)
      ? `it has no user ${namedIn(message)}: create it with createuser --pwprompt, or name another one in --store`
      : `it refuses this user from this address or with this encryption: check sslmode and its pg_hba.conf (${message})`,
  "3D000": (message) =>
    `it has no such database as ${namedIn(message)}: create it with createdb --owner, or name another one at the end of --store`,
  "42501": "the user may not do that: make it the owner of the database",
  // The only unique key that a statement does not look at first is the name of a node.
  "23505": "another node has the name of this one: give each its own --node-name, and restart",
  "25006": "it is read-only, as a standby is: name the primary",
  "53100": "its disk is full: make room there",
  "53300": "it has no connection left: raise max_connections, each node needs 3",
  "57P03": "it is starting, or stopping",
};

/** What it means and what to do, for a failed query; null: nothing more than that the database cannot be reached. */
export function meaningOf(error: unknown): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code, errno } = cause as { readonly code?: string; readonly errno?: unknown };
    if (code === "ERR_POSTGRES_TLS_NOT_AVAILABLE")
      return "it offers no TLS: turn it on there, or leave sslmode out";
    if (code === "ERR_POSTGRES_SERVER_ERROR") {
      const meaning = MEANINGS[String(errno)] ?? cause.message;
      return typeof meaning === "string" ? meaning : meaning(cause.message);
    }
    if (code !== undefined && /VERIFY|CERT|SIGNATURE|ALTNAME/.test(code))
      return `its certificate is not trusted (${cause.message}): add sslrootcert=FILE with its CA to --store, and name its host as in the certificate`;
  }
  return null;
}

/** The name that a message of the server quotes, in any language. */
const namedIn = (message: string): string => /["«„“](.+?)["»“”]/.exec(message)?.[0] ?? "of --store";
