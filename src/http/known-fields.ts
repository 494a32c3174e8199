// The header fields of a request that the gateway itself reads, found in one pass; knows no request.

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

/**
 * Sets the present ones in `into`. `headers` has lower-case names. Clients send fields in different orders, and an object of
 * them has another shape for each order. The engine compiles property access for the shapes it has met and recompiles it
 * for a new one: seconds of slower requests each time. One pass over all fields does not depend on shapes.
 */
export function readKnownFields(
  headers: Readonly<Record<string, string>>,
  into: KnownFields,
): void {
  for (const name in headers) {
    const value = headers[name] ?? "";
    switch (name.length) {
      case 3:
        if (name === "via") into.via = value;
        break;
      case 4:
        if (name === "host") into.hostField = value;
        break;
      case 6:
        if (name === "cookie") into.cookie = value;
        break;
      case 7:
        if (name === "upgrade") into.upgrade = value;
        break;
      case 8:
        if (name === "cdn-loop") into.cdnLoop = value;
        break;
      case 10:
        if (name === "user-agent") into.userAgent = value;
        else if (name === "connection") into.connectionField = value;
        break;
      case 14:
        if (name === "content-length") into.contentLength = value;
        break;
      case 17:
        if (name === "transfer-encoding") into.transferEncoding = value;
        break;
    }
  }
}
