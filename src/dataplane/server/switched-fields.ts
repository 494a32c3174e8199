// The fields of the response with which a connection becomes a tunnel; knows no connection.
import { FieldList } from "../../http/field-list.ts";
import type { FieldPairs } from "../../http/fields.ts";
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";

const OWN: ReadonlySet<string> = new Set([
  ...CONNECTION_FIELDS,
  "sec-websocket-accept",
  "content-length",
]);

/** Without those of the connection, and those that the engine writes itself. Throws TypeError when one is not valid. */
export const switchedFields = (fields: FieldPairs): FieldPairs =>
  new FieldList(fields).pairs.filter(
    ([name, value]) => value !== "" && !OWN.has(name.toLowerCase()),
  );
