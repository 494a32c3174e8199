// The header fields of a request that the gateway itself reads, found in one pass; knows no request.
import { KNOWN } from "./field-name.ts";
import { type HeaderBlock, joined } from "./header-block.ts";

/** As sent; null: absent. Repeated fields are joined. */
export interface KnownFields {
  hostField: string | null;
  connectionField: string | null;
  transferEncoding: string | null;
  contentLength: string | null;
  upgrade: string | null;
  cookie: string | null;
  via: string | null;
  cdnLoop: string | null;
  userAgent: string | null;
}

/** Sets the present ones in `into`, whose members must be null. */
export function readKnownFields(fields: HeaderBlock, into: KnownFields): void {
  const { names } = fields;
  for (let at = 0; at < names.length; at++) {
    const name = names[at];
    if (name === undefined || name.known === 0) continue;
    const { lower } = name;
    const value = fields.valueAt(at);
    switch (name.known) {
      case KNOWN.host:
        into.hostField = after(into.hostField, lower, value);
        break;
      case KNOWN.connection:
        into.connectionField = after(into.connectionField, lower, value);
        break;
      case KNOWN["transfer-encoding"]:
        into.transferEncoding = after(into.transferEncoding, lower, value);
        break;
      case KNOWN["content-length"]:
        into.contentLength = after(into.contentLength, lower, value);
        break;
      case KNOWN.upgrade:
        into.upgrade = after(into.upgrade, lower, value);
        break;
      case KNOWN.cookie:
        into.cookie = after(into.cookie, lower, value);
        break;
      case KNOWN.via:
        into.via = after(into.via, lower, value);
        break;
      case KNOWN["cdn-loop"]:
        into.cdnLoop = after(into.cdnLoop, lower, value);
        break;
      case KNOWN["user-agent"]:
        into.userAgent = after(into.userAgent, lower, value);
        break;
    }
  }
}

const after = (before: string | null, lower: string, value: string): string =>
  before === null ? value : joined(lower, before, value);
