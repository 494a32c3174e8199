// Reads rows of Nginx Proxy Manager's database and parses their JSON columns; knows no table.
import { ApiError, invalid } from "../../model/error.ts";
import type { ParseJson } from "../transfer/source.ts";
import { Members } from "../members.ts";
import type { Report } from "../report.ts";
import type { Tables } from "./tables.ts";

const JSON_COLUMNS = ["domain_names", "meta", "locations"];

export interface RowContext {
  readonly tables: Tables;
  readonly parseJson: ParseJson;
  readonly report: Report;
}

/** Rows that are not deleted. Errors name table, row and column. */
export function rowsOf(table: string, { tables, parseJson, report }: RowContext): Members[] {
  return tables.rows(table).flatMap((row, index) => {
    const path = `${table}[${index}]`;
    const parsed = Object.entries(row).map(([column, value]) => [
      column,
      JSON_COLUMNS.includes(column) && typeof value === "string" && value !== ""
        ? parseColumn(value, `${path}.${column}`, parseJson)
        : value,
    ]);
    const members = new Members(
      Object.fromEntries(parsed),
      { path, label: `${table.replaceAll("_", " ")} ${index + 1}`, inner: "" },
      report,
    );
    for (const column of ["owner_user_id", "id"]) members.raw(column);
    if (members.number("is_deleted") !== 1) return [members];
    members.ignoreRest();
    return [];
  });
}

function parseColumn(text: string, path: string, parseJson: ParseJson): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw invalid(path, error.message.replace("the body", "it"));
  }
}

/** SQLite has no booleans: versions write numbers or text. */
export function isSet(members: Members, column: string): boolean {
  const value = members.raw(column);
  return value === 1 || value === true || value === "1";
}

/** Older versions have no disabled hosts. */
export const isOn = (members: Members): boolean =>
  members.raw("enabled") === null || isSet(members, "enabled");

/** The row id, which other rows reference. */
export const idOf = (members: Members): number => Number(members.raw("id") ?? 0);

/** `2024-01-31 12:00:00`, in UTC. */
export function timesOf(members: Members): Record<string, unknown> {
  const at = (column: string, field: string) => {
    const text = members.raw(column);
    const time = typeof text === "string" ? Date.parse(`${text.replace(" ", "T")}Z`) : Number.NaN;
    return Number.isNaN(time) ? {} : { [field]: new Date(time).toISOString() };
  };
  return { ...at("created_on", "created_at"), ...at("modified_on", "updated_at") };
}

/** Status of nginx after the last change of the host. */
export function omitState(members: Members): void {
  const meta = members.object("meta");
  if (meta === null) return;
  for (const name of ["nginx_online", "nginx_err", "letsencrypt_agree", "letsencrypt_email"])
    meta.raw(name);
  for (const name of ["dns_challenge", "dns_provider", "dns_provider_credentials"]) meta.raw(name);
}
