// The header fields of a request that the gateway itself reads, found in one pass; knows no request.
import { KNOWN, type KnownFields } from "./field-name.ts";
import { type HeaderBlock, joined } from "./header-block.ts";

export function readKnownFields(fields: HeaderBlock): KnownFields {
  const into: KnownFields = {
    hostField: null,
    connectionField: null,
    transferEncoding: null,
    contentLength: null,
    upgrade: null,
    cookie: null,
    via: null,
    cdnLoop: null,
    userAgent: null,
  };
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
  return into;
}

const after = (before: string | null, lower: string, value: string): string =>
  before === null ? value : joined(lower, before, value);
