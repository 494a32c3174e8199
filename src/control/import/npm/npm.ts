// Converts the database of Nginx Proxy Manager; knows nothing of what is in a table.
import { ApiError } from "../../../model/error.ts";
import { OrderedCertificates } from "../acme.ts";
import type { ConversionContext } from "../convert.ts";
import type { Output } from "../output.ts";
import { type AccessList, readAccessLists } from "./access-lists.ts";
import { addCertificates } from "./certificates.ts";
import { addDeadHosts, addDefaultSite, addRedirections } from "./answers.ts";
import { addProxyHosts } from "./proxy-hosts.ts";
import type { RowContext } from "./rows.ts";
import { addStreams } from "./streams.ts";

export interface NpmContext extends RowContext {
  readonly output: Output;
  readonly ordered: OrderedCertificates;
  /** By the number of the row. */
  readonly certificates: Map<number, string>;
  readonly accessLists: ReadonlyMap<number, AccessList>;
}

/** What says nothing about traffic. */
const BOOKKEEPING = ["migrations", "migrations_lock", "sqlite_sequence", "token"];

const READ = [
  ...["proxy_host", "redirection_host", "dead_host", "stream", "certificate", "setting"],
  ...["access_list", "access_list_auth", "access_list_client"],
];

const PEOPLE = ["user", "user_permission", "auth"];

/** Throws for what is no such database. */
export async function convertNpm(
  bytes: Uint8Array,
  output: Output,
  { parseJson, openTables }: Pick<ConversionContext, "parseJson" | "openTables">,
): Promise<void> {
  const tables = openTables(bytes);
  const { report } = output;
  if (!tables.names.includes("proxy_host"))
    throw new ApiError(400, "the database has no table proxy_host: it is none of this program");
  const rows = { tables, parseJson, report };
  const context: NpmContext = {
    ...rows,
    output,
    ordered: new OrderedCertificates(output),
    certificates: new Map(),
    accessLists: await readAccessLists(rows),
  };
  addCertificates(context);
  addProxyHosts(context);
  addRedirections(context);
  addDeadHosts(context);
  addStreams(context);
  addDefaultSite(context);
  for (const name of tables.names) {
    if (READ.includes(name) || BOOKKEEPING.includes(name) || tables.rows(name).length === 0)
      continue;
    if (PEOPLE.includes(name)) report.leftOut(`table ${name}`, "create the users here anew");
    else if (name === "audit_log") report.leftOut("audit log", "this gateway keeps its own");
    else report.leftOut(`table ${name}`, "this import does not know it");
  }
}
