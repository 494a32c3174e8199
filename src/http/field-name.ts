// Names of request header fields, as sent and as compared, with what becomes of each on its way to a target; knows no request.
import { hyphenated } from "./fields.ts";
import { HOP_BY_HOP } from "./hop-by-hop.ts";
import { conventional } from "./usual-case.ts";

/**
 * Names that an application could mistake for the gateway's header fields: dropped in every spelling except these, see
 * `hyphenated`.
 */
const ALIASES =
  /^(?:x-(?:forwarded|real-ip|request-id|consumer|credential|anonymous|authenticated|auth)|forwarded|via$|cdn-loop|host$|content-length|transfer-encoding|connection|proxy-|client-cert)/;

/** Header fields that are dropped or that the gateway sets itself. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "expect",
  "http2-settings",
  "x-real-ip",
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  // RFC 9440 section 4: only the gateway sets the client's certificate.
  "client-cert",
  "client-cert-chain",
  "via",
  "cdn-loop",
  // CGI turns it into HTTP_PROXY, which libraries use for their own requests (httpoxy, CVE-2016-5385).
  "proxy",
  // Only the gateway sets the client's identity.
  "x-consumer-id",
  "x-consumer-username",
  "x-consumer-custom-id",
  "x-consumer-groups",
  "x-credential-identifier",
  "x-anonymous-consumer",
]);

/**
 * What becomes of a field. `trusted`: only a trusted proxy may send it, including non-standard ones such as X-Forwarded-User.
 * `extensions`: only where the frames of WebSockets pass as they are.
 */
type Handling = "dropped" | "trusted" | "passed" | "id" | "deadline" | "extensions";

/** Fields that the gateway itself reads, by name. */
const known = {
  host: 1,
  connection: 2,
  "transfer-encoding": 3,
  "content-length": 4,
  upgrade: 5,
  cookie: 6,
  via: 7,
  "cdn-loop": 8,
  "user-agent": 9,
  expect: 10,
  te: 11,
} as const;

export { known as KNOWN };

/** Fields that the gateway itself reads, as sent; null: absent. Repeated fields are joined. */
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
  expect: string | null;
  te: string | null;
}

/** The member for each of `KNOWN`. */
export const KNOWN_MEMBERS: readonly (keyof KnownFields | null)[] = [
  null,
  "hostField",
  "connectionField",
  "transferEncoding",
  "contentLength",
  "upgrade",
  "cookie",
  "via",
  "cdnLoop",
  "userAgent",
  "expect",
  "te",
];

export interface FieldName {
  /** As the client has sent it. */
  readonly sent: string;
  readonly lower: string;
  /** One of `KNOWN`; 0: the gateway does not read it. A number, because a client's order of fields must not matter. */
  readonly known: number;
  readonly handling: Handling;
  /** Precedes the value in a head: CRLF of the previous line, the name as sent and a colon. */
  readonly prefix: string;
}

const names = new Map<string, FieldName>();
const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 64;

/** `sent` must be a token. Names that clients use are looked up once for each spelling. */
export function fieldName(sent: string): FieldName {
  const found = names.get(sent);
  if (found !== undefined) return found;
  const lower = sent.toLowerCase();
  const name = {
    sent,
    lower,
    known: Object.hasOwn(known, lower) ? known[lower as keyof typeof known] : 0,
    handling: handlingOf(lower),
    prefix: `\r\n${sent}: `,
  };
  if (names.size >= MAX_NAMES) names.clear();
  if (sent.length <= MAX_NAME_LENGTH) names.set(sent, name);
  return name;
}

const usual = new Map<string, FieldName>();

/** A name that came in lower case because it had to, as targets of HTTP/1.1 get it. `lower` must be a token. */
export function usualName(lower: string): FieldName {
  const found = usual.get(lower);
  if (found !== undefined) return found;
  const name = fieldName(conventional(lower));
  if (usual.size >= MAX_NAMES) usual.clear();
  if (lower.length <= MAX_NAME_LENGTH) usual.set(lower, name);
  return name;
}

/** The last names by a hash of their bytes, for parsers that look a name up without a string of it. */
export class NameSlots {
  readonly names: (FieldName | undefined)[] = new Array(SLOTS).fill(undefined);
  readonly bytes: Uint8Array[] = new Array(SLOTS).fill(NO_BYTES);

  /** The name in `bytes` from `start` to `end`, which is in no slot; it is in `slot` afterwards. */
  fill(
    slot: number,
    bytes: Buffer,
    { start, end }: { readonly start: number; readonly end: number },
  ): FieldName {
    const name = fieldName(bytes.latin1Slice(start, end));
    if (end - start <= MAX_NAME_LENGTH) {
      this.names[slot] = name;
      this.bytes[slot] = Uint8Array.prototype.slice.call(bytes, start, end);
    }
    return name;
  }
}

const NO_BYTES = new Uint8Array(0);
/** A power of two. */
export const SLOTS = 1024;

function handlingOf(name: string): Handling {
  const plain = hyphenated(name);
  if (NOT_FORWARDED.has(name) || (plain !== name && ALIASES.test(plain))) return "dropped";
  if (name.startsWith("x-forwarded-") || name === "forwarded") return "trusted";
  if (name === "grpc-timeout") return "deadline";
  if (name === "sec-websocket-extensions") return "extensions";
  return name === "x-request-id" ? "id" : "passed";
}
