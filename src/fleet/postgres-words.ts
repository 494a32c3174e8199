// What a refusal of PostgreSQL means to an operator; asks nothing.

/** SQLSTATE codes of refusals that an operator can mend, or their classes. */
const MEANINGS: Readonly<Record<string, string>> = {
  "28P01": "it refuses the user or the password: check both",
  "28000": "it refuses this user, address or encryption: check user, sslmode and its pg_hba.conf",
  "3D000": "it has no such database: create it, or name another one",
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
    if (code === "ERR_POSTGRES_SERVER_ERROR") return MEANINGS[String(errno)] ?? cause.message;
    if (code !== undefined && /VERIFY|CERT|SIGNATURE|ALTNAME/.test(code))
      return `its certificate is not trusted (${cause.message}): add sslrootcert=FILE with its CA to --store, and name its host as in the certificate`;
  }
  return null;
}
