// Encodes routes for memory that workers share: the fields that differ from the defaults, as JSON; knows no memory.
import { compact, type Defaults, expand } from "../model/compact.ts";
import type { Route } from "../model/route.ts";
import type { RecordKey, RecordTable } from "../shared-memory/record-reader.ts";

/** The routes of one version in shared memory. */
export interface RouteTable {
  readonly records: RecordTable;
  /** With each table, because workers know no schema. */
  readonly defaults: Defaults;
}

/** The key of a route's record. */
export const routeKey = (id: string): RecordKey => id;

/** With hundreds of thousands of routes, default values would use most of the memory. The id comes first. */
export const encodeRoute = (route: Route, defaults: Defaults): string =>
  JSON.stringify({ id: route.id, ...compact(route, defaults) });

/** Whether a record is of the route with this id. */
export const isRecordOf = (text: string, id: string): boolean =>
  text.startsWith(`{"id":${JSON.stringify(id)}`);

export const decodeRoute = (text: string, defaults: Defaults): Route =>
  expand(JSON.parse(text) as object, defaults) as Route;
