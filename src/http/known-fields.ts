// The header fields of a request that the gateway itself reads, found in one pass; knows no request.
import { KNOWN, type KnownFields } from "./field-name.ts";
import { type HeaderBlock, joined } from "./header-block.ts";

/** Sets them in the block, once. */
export function readKnownFields(fields: HeaderBlock): KnownFields {
  if (fields.isRead) return fields;
  fields.isRead = true;
  const { names } = fields;
  for (let at = 0; at < names.length; at++) {
    const name = names[at];
    if (name === undefined || name.known === 0) continue;
    const { lower } = name;
    const value = fields.valueAt(at);
    switch (name.known) {
      case KNOWN.host:
        fields.hostField = after(fields.hostField, lower, value);
        break;
      case KNOWN.connection:
        fields.connectionField = after(fields.connectionField, lower, value);
        break;
      case KNOWN["transfer-encoding"]:
        fields.transferEncoding = after(fields.transferEncoding, lower, value);
        break;
      case KNOWN["content-length"]:
        fields.contentLength = after(fields.contentLength, lower, value);
        break;
      case KNOWN.upgrade:
        fields.upgrade = after(fields.upgrade, lower, value);
        break;
      case KNOWN.cookie:
        fields.cookie = after(fields.cookie, lower, value);
        break;
      case KNOWN.via:
        fields.via = after(fields.via, lower, value);
        break;
      case KNOWN["cdn-loop"]:
        fields.cdnLoop = after(fields.cdnLoop, lower, value);
        break;
      case KNOWN["user-agent"]:
        fields.userAgent = after(fields.userAgent, lower, value);
        break;
      case KNOWN.expect:
        fields.expect = after(fields.expect, lower, value);
        break;
      case KNOWN.te:
        fields.te = after(fields.te, lower, value);
        break;
    }
  }
  return fields;
}

const after = (before: string | null, lower: string, value: string): string =>
  before === null ? value : joined(lower, before, value);
