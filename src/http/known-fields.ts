// The header fields of a request that the gateway itself reads, found in one pass; knows no request.
import { KNOWN_MEMBERS, type KnownFields } from "./field-name.ts";
import { type HeaderBlock, joined } from "./header-block.ts";

/** Sets them in the block, once. */
export function readKnownFields(fields: HeaderBlock): KnownFields {
  if (fields.isRead) return fields;
  fields.isRead = true;
  const { names } = fields;
  for (let at = 0; at < names.length; at++) {
    const name = names[at];
    const member = KNOWN_MEMBERS[name?.known ?? 0] ?? null;
    if (name === undefined || member === null) continue;
    const before = fields[member];
    const value = fields.valueAt(at);
    fields[member] = before === null ? value : joined(name.lower, before, value);
  }
  return fields;
}
