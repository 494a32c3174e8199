// How routes are written into memory that workers share: what differs from the defaults, as JSON; knows no memory.
import type { Route } from "../model/route.ts";
import type { RecordKey, RecordTable } from "../shared-memory/record-reader.ts";

/** A route in which everything is as the schema has it; with each table, because workers know no schema. */
export type RouteDefaults = Readonly<Record<string, unknown>>;

/** Where the routes of one version are. */
export interface RouteTable {
  readonly records: RecordTable;
  readonly defaults: RouteDefaults;
}

/** The key of a route's record. */
export const routeKey = (id: string): RecordKey => id;

/** With hundreds of thousands of routes, fields at their default would be most of the memory. The id comes first. */
export function encodeRoute(route: Route, defaults: RouteDefaults): string {
  const written: Record<string, unknown> = { id: route.id };
  const members = route as unknown as Readonly<Record<string, unknown>>;
  for (const name in members)
    if (!isSame(members[name], defaults[name])) written[name] = members[name];
  return JSON.stringify(written);
}

/** Whether a record is that of the route with this id. */
export const isRecordOf = (text: string, id: string): boolean =>
  text.startsWith(`{"id":${JSON.stringify(id)}`);

export const decodeRoute = (text: string, defaults: RouteDefaults): Route =>
  ({ ...defaults, ...(JSON.parse(text) as object) }) as unknown as Route;

/** As deep as defaults of routes go: lists and objects of plain values. */
function isSame(value: unknown, usual: unknown): boolean {
  if (value === usual) return true;
  if (typeof value !== "object" || typeof usual !== "object") return false;
  if (value === null || usual === null) return false;
  if (Array.isArray(value))
    return (
      Array.isArray(usual) &&
      value.length === usual.length &&
      value.every((item, index) => item === usual[index])
    );
  const [own, others] = [value, usual] as readonly Readonly<Record<string, unknown>>[];
  for (const name in own) if (own[name] !== others?.[name]) return false;
  for (const name in others) if (!(name in value)) return false;
  return true;
}
