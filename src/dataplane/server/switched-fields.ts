// The fields of the response with which a connection becomes a tunnel; knows no connection.
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";
import type { FieldPairs } from "../../http/fields.ts";

/** Without those of the connection, and those that the engine writes itself. Throws TypeError when one is not valid. */
export const switchedFields = (fields: FieldPairs): FieldPairs =>
  [...new Headers(fields as [string, string][])].filter(
    ([name, value]) =>
      value !== "" &&
      !CONNECTION_FIELDS.has(name) &&
      name !== "sec-websocket-accept" &&
      name !== "content-length",
  );
