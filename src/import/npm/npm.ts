// Converts the database of Nginx Proxy Manager; knows no column.
import { ApiError } from "../../model/error.ts";
import { AcmeCertificates } from "../acme.ts";
import type { ConversionContext } from "../convert.ts";
import type { Output } from "../output.ts";
import { type AccessList, readAccessLists } from "./access-lists.ts";
import { addCertificates, type ImportedCertificate } from "./certificates.ts";
import { addDeadHosts, addDefaultSite, addRedirections } from "./responses.ts";
import { addProxyHosts } from "./proxy-hosts.ts";
import { applyCustomFiles } from "./custom-files.ts";
import type { RowContext } from "./rows.ts";
import { addStreams } from "./streams.ts";
import type { FindFile } from "./tables.ts";

export interface NpmContext extends RowContext {
  readonly output: Output;
  readonly ordered: AcmeCertificates;
  /** By row id. */
  readonly certificates: Map<number, ImportedCertificate>;
  /** Ids by their settings. */
  readonly dnsProviders: Map<string, string>;
  /** Null: only the database is there. */
  readonly findFile: FindFile | null;
  readonly accessLists: ReadonlyMap<number, AccessList>;
}

/** Tables without configuration. */
const INTERNAL_TABLES = ["migrations", "migrations_lock", "sqlite_sequence", "token"];

const READ = [
  ...["proxy_host", "redirection_host", "dead_host", "stream", "certificate", "setting"],
  ...["access_list", "access_list_auth", "access_list_client"],
];

const USER_TABLES = ["user", "user_permission", "auth"];

/** Throws a 400 for another database. */
export async function convertNpm(
  bytes: Uint8Array,
  output: Output,
  { parseJson, openTables, findFile }: Omit<ConversionContext, "plugins">,
): Promise<void> {
  const tables = openTables(bytes);
  const { report } = output;
  if (!tables.names.includes("proxy_host"))
    throw new ApiError(
      400,
      "the database has no table proxy_host: it is not from Nginx Proxy Manager",
    );
  const rows = { tables, parseJson, report };
  const context: NpmContext = {
    ...rows,
    output,
    ordered: new AcmeCertificates(output),
    certificates: new Map(),
    dnsProviders: new Map(),
    findFile: findFile ?? null,
    accessLists: await readAccessLists(rows),
  };
  addCertificates(context);
  await addProxyHosts(context);
  addRedirections(context);
  addDeadHosts(context);
  addStreams(context);
  applyCustomFiles(context);
  addDefaultSite(context);
  for (const name of tables.names) {
    if (READ.includes(name) || INTERNAL_TABLES.includes(name) || tables.rows(name).length === 0)
      continue;
    if (USER_TABLES.includes(name))
      report.omitted("users of Nginx Proxy Manager", "create them in this gateway");
    else if (name === "audit_log")
      report.omitted("audit log", "this gateway has its own audit log");
    else report.omitted(`table ${name}`, "the import does not support it");
  }
}
