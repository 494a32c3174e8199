// Parses Host values and normalizes host names; knows nothing of routes or TLS.
import ipaddr from "ipaddr.js";

/** A valid authority without user information; `host` is lower-case, without trailing dot, IPv6 in brackets. */
export interface Authority {
  readonly host: string;
  /** Null when there is no port, or nothing after the colon (RFC 3986 3.2.3 allows that). */
  readonly port: number | null;
}

const MAX_NAME_LENGTH = 253;
const NUMBER = /^(?:\d+|0[xX][0-9a-fA-F]*)$/;
const DOTTED_QUAD = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const COLON = 58;
const DOT = 46;

/**
 * Parses a Host value; null when it is not a valid authority (RFC 9110 7.2, RFC 3986 3.2.2) and the request must
 * get 400. Stricter than the grammar where two programs could read one value differently: no user information, no
 * percent-escapes, commas (Bun joins two Host fields with one) or other sub-delimiters, no empty label, and no name
 * that ends in a number unless it is a dotted quad. For such a name (`999.1.1.1`, `a.0x`) Bun also leaves dot segments
 * in the path of `req.url`.
 */
export function parseAuthority(raw: string): Authority | null {
  if (raw.charCodeAt(0) === 91) return parseIpLiteral(raw);
  const colon = raw.indexOf(":");
  const host = normalizeName(colon < 0 ? raw : raw.slice(0, colon));
  const port = colon < 0 ? null : parsePort(raw, colon + 1);
  return host === null || port === INVALID_PORT ? null : { host, port };
}

/** The normalized host of a Host value: that of `parseAuthority`; null when the value is invalid. */
export function normalizeHost(raw: string): string | null {
  // A plain lower-case name, the usual case, is its own normal form and needs no object.
  return raw.indexOf(":") < 0 ? normalizeName(raw) : (parseAuthority(raw)?.host ?? null);
}

const INVALID_PORT = -1;

function parsePort(text: string, from: number): number | null {
  if (from === text.length) return null;
  if (text.length - from > 5) return INVALID_PORT;
  let port = 0;
  for (let i = from; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit < 0 || digit > 9) return INVALID_PORT;
    port = port * 10 + digit;
  }
  return port > 65_535 ? INVALID_PORT : port;
}

function parseIpLiteral(raw: string): Authority | null {
  const close = raw.indexOf("]");
  const inside = raw.slice(1, close);
  // A zone id has no meaning to another host and is not part of RFC 3986.
  if (close < 0 || inside.indexOf("%") >= 0 || !ipaddr.IPv6.isValid(inside)) return null;
  const host = `[${ipaddr.IPv6.parse(inside).toRFC5952String()}]`;
  if (close === raw.length - 1) return { host, port: null };
  if (raw.charCodeAt(close + 1) !== COLON) return null;
  const port = parsePort(raw, close + 2);
  return port === INVALID_PORT ? null : { host, port };
}

/** Lower-case, without one trailing dot; null for anything but labels of letters, digits, `-`, `_` and `~`. */
function normalizeName(text: string): string | null {
  let upper = false;
  let labelStart = 0;
  const end = text.charCodeAt(text.length - 1) === DOT ? text.length - 1 : text.length;
  if (end === 0 || end > MAX_NAME_LENGTH) return null;
  for (let i = 0; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code >= 97 && code <= 122) continue;
    if (code === DOT) {
      if (i === labelStart) return null;
      labelStart = i + 1;
    } else if (code >= 65 && code <= 90) upper = true;
    else if (!((code >= 48 && code <= 57) || code === 45 || code === 95 || code === 126))
      return null;
  }
  if (labelStart === end) return null;
  const name = end === text.length ? text : text.slice(0, end);
  const first = name.charCodeAt(labelStart);
  if (first >= 48 && first <= 57 && !isUnambiguous(name, labelStart)) return null;
  return upper ? name.toLowerCase() : name;
}

/** Programs read a name with a numeric last label as an IPv4 address (WHATWG URL 3.5): they only agree on dotted quads. */
function isUnambiguous(name: string, lastLabel: number): boolean {
  if (!NUMBER.test(name.slice(lastLabel))) return true;
  return DOTTED_QUAD.test(name);
}

const MAX_KNOWN_HOSTS = 1024;

/** A cache of Host values: they repeat, and a check costs more than a lookup. */
export class HostCache {
  /** By Host value, as `normalizeHost`. What is not here yet must be normalized. */
  readonly known = new Map<string, string | null>();

  /** As `normalizeHost`: null when it is not a valid authority. */
  normalize(raw: string): string | null {
    const host = normalizeHost(raw);
    if (this.known.size >= MAX_KNOWN_HOSTS) this.known.clear();
    this.known.set(raw, host);
    return host;
  }
}
