// Reads the server name and the protocols from the first bytes of a TLS connection, without consuming them; knows no socket.

/** The unencrypted facts of a ClientHello. */
export interface ClientHello {
  /** Lower-case host name (RFC 6066 section 3), null when the client named none. */
  readonly serverName: string | null;
  /** Protocols by ALPN (RFC 7301), in the client's order. */
  readonly protocols: readonly string[];
  /** Whether it offers TLS 1.3, which a server with TLS 1.3 then selects. */
  readonly offersTls13: boolean;
}

/** `incomplete`: more bytes are needed. `invalid`: this is no TLS, or no ClientHello that can be read. */
export type HelloResult = ClientHello | "incomplete" | "invalid";

/** A ClientHello longer than this is refused: browsers send less than 4 KB, with post-quantum keys. */
export const MAX_HELLO_BYTES = 16_384;

const [HANDSHAKE, CLIENT_HELLO] = [22, 1] as const;
const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const [SERVER_NAME, ALPN, SUPPORTED_VERSIONS] = [0, 16, 43] as const;
const TLS_1_3 = 0x0304;
const HOST_NAME = 0;

/** Thrown inside when a length leads past the end of what should hold it. */
class Malformed extends Error {}

const fail = (): never => {
  throw new Malformed();
};

/** Reads what has arrived so far (RFC 8446 sections 4.1.2 and 5.1); the message may be spread over several records. */
export function readClientHello(bytes: Uint8Array): HelloResult {
  const message = collectMessage(bytes);
  if (typeof message === "string") return message;
  try {
    return parse(new Reader(message, MESSAGE_HEADER, message.length));
  } catch (error) {
    if (error instanceof Malformed) return "invalid";
    throw error;
  }
}

/** The first handshake message with its header, joined from its records. */
function collectMessage(bytes: Uint8Array): Uint8Array | "incomplete" | "invalid" {
  const parts: Uint8Array[] = [];
  let [at, have] = [0, 0];
  let needed = MESSAGE_HEADER;
  while (have < needed) {
    // The present part of a record's header must be valid: rejects garbage at its first byte.
    if (at < bytes.length && bytes[at] !== HANDSHAKE) return "invalid";
    if (at + 1 < bytes.length && bytes[at + 1] !== 3) return "invalid";
    if (at + RECORD_HEADER > bytes.length) return "incomplete";
    const length = ((bytes[at + 3] ?? 0) << 8) | (bytes[at + 4] ?? 0);
    if (length === 0 || length > MAX_HELLO_BYTES) return "invalid";
    const record = bytes.subarray(at + RECORD_HEADER, at + RECORD_HEADER + length);
    parts.push(record);
    have += record.length;
    at += RECORD_HEADER + length;
    if (needed === MESSAGE_HEADER && have >= MESSAGE_HEADER) {
      const start = parts.length === 1 ? record : Buffer.concat(parts);
      if (start[0] !== CLIENT_HELLO) return "invalid";
      const size = ((start[1] ?? 0) << 16) | ((start[2] ?? 0) << 8) | (start[3] ?? 0);
      if (size > MAX_HELLO_BYTES) return "invalid";
      needed = MESSAGE_HEADER + size;
    }
    if (record.length < length && have < needed) return "incomplete";
  }
  const [only] = parts;
  const message = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
  return message.subarray(0, needed);
}

/** Steps through a part of bytes and never past its end. Every new connection is read: parts are positions, not copies. */
class Reader {
  readonly bytes: Uint8Array;
  readonly end: number;
  at: number;

  constructor(bytes: Uint8Array, at: number, end: number) {
    if (end > bytes.length) throw new Malformed();
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get isAtEnd(): boolean {
    return this.at >= this.end;
  }

  number(size: 1 | 2): number {
    const { bytes, at } = this;
    if (at + size > this.end) throw new Malformed();
    this.at += size;
    const high = bytes[at] ?? 0;
    return size === 1 ? high : (high << 8) | (bytes[at + 1] ?? 0);
  }

  skip(length: number): void {
    this.at += length;
    if (this.at > this.end) throw new Malformed();
  }

  /** A vector with a length prefix of one or two bytes. */
  vector(lengthSize: 1 | 2): Reader {
    const length = this.number(lengthSize);
    const { at } = this;
    this.skip(length);
    return new Reader(this.bytes, at, this.at);
  }

  /** What is left, as text. */
  text(): string {
    let text = "";
    for (let at = this.at; at < this.end; at++) text += String.fromCharCode(this.bytes[at] ?? 0);
    return text;
  }
}

function parse(message: Reader): ClientHello {
  // Version and random.
  message.skip(34);
  message.skip(message.number(1));
  message.skip(message.number(2));
  message.skip(message.number(1));
  let names: Reader | null = null;
  let protocols: Reader | null = null;
  let versions: Reader | null = null;
  const extensions = message.isAtEnd ? message : message.vector(2);
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    // RFC 8446 section 4.2 forbids a second one: a target that reads the other one would serve a name that no rule has
    // checked.
    if (type === SERVER_NAME) names = names === null ? extensions.vector(2) : fail();
    else if (type === ALPN) protocols = protocols === null ? extensions.vector(2) : fail();
    else if (type === SUPPORTED_VERSIONS)
      versions = versions === null ? extensions.vector(2) : fail();
    else extensions.skip(extensions.number(2));
  }
  return {
    serverName: names === null ? null : hostNameOf(names.vector(2)),
    protocols: protocols === null ? [] : protocolsOf(protocols.vector(2)),
    offersTls13: versions !== null && offers(versions.vector(1), TLS_1_3),
  };
}

/** RFC 6066 section 3: at most one name of a kind. */
function hostNameOf(names: Reader): string | null {
  let hostName: string | null = null;
  while (!names.isAtEnd) {
    const type = names.number(1);
    const name = names.vector(2);
    if (type !== HOST_NAME) continue;
    const text = name.text().toLowerCase();
    // A trailing dot names the same host and must not bypass its rules.
    const host = text.endsWith(".") ? text.slice(0, -1) : text;
    if (!/^[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?$/.test(host)) throw new Malformed();
    hostName = hostName === null ? host : fail();
  }
  return hostName;
}

/** RFC 8446 section 4.2.1. */
function offers(list: Reader, version: number): boolean {
  let isThere = false;
  while (!list.isAtEnd) isThere = list.number(2) === version || isThere;
  return isThere;
}

function protocolsOf(list: Reader): readonly string[] {
  const protocols: string[] = [];
  while (!list.isAtEnd) protocols.push(list.vector(1).text());
  return protocols;
}
