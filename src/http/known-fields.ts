// The fields of a request that the gateway itself reads, picked out in one pass; knows no request.

/** Null: the client has not sent it. Repeated fields are joined. */
export interface KnownFields {
  readonly host: string | null;
  readonly connection: string | null;
  readonly transferEncoding: string | null;
  readonly contentLength: string | null;
  readonly upgrade: string | null;
  readonly cookie: string | null;
  readonly via: string | null;
  readonly cdnLoop: string | null;
  readonly userAgent: string | null;
}

/**
 * `headers` has lower-case names. Every client sends its fields in an order of its own, and an object made of them has a
 * shape for each. Code that asks for fields by name is compiled for the shapes that it has met, and compiled again when
 * the next client comes with another one: seconds of slower requests each time. A pass over all does not depend on shapes.
 */
export function knownFields(headers: Readonly<Record<string, string>>): KnownFields {
  let host: string | null = null;
  let connection: string | null = null;
  let transferEncoding: string | null = null;
  let contentLength: string | null = null;
  let upgrade: string | null = null;
  let cookie: string | null = null;
  let via: string | null = null;
  let cdnLoop: string | null = null;
  let userAgent: string | null = null;
  for (const name in headers) {
    const value = headers[name] ?? "";
    switch (name.length) {
      case 3:
        if (name === "via") via = value;
        break;
      case 4:
        if (name === "host") host = value;
        break;
      case 6:
        if (name === "cookie") cookie = value;
        break;
      case 7:
        if (name === "upgrade") upgrade = value;
        break;
      case 8:
        if (name === "cdn-loop") cdnLoop = value;
        break;
      case 10:
        if (name === "user-agent") userAgent = value;
        else if (name === "connection") connection = value;
        break;
      case 14:
        if (name === "content-length") contentLength = value;
        break;
      case 17:
        if (name === "transfer-encoding") transferEncoding = value;
        break;
    }
  }
  return {
    host,
    connection,
    transferEncoding,
    contentLength,
    upgrade,
    cookie,
    via,
    cdnLoop,
    userAgent,
  };
}
