// The header list of an HTTP/2 request as the request path needs it, checked again by RFC 9113 section 8; knows no stream.

import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";
import { normalTarget } from "../../http/request-target.ts";

export interface RequestFields {
  readonly method: string;
  /** Absolute form. */
  readonly url: string;
  /** Lower-case names; repeated fields joined. */
  readonly headers: Record<string, string>;
  /** A WebSocket's, as the handshake that HTTP/1.1 has for it. */
  readonly isWebSocket: boolean;
}

/** RFC 9113 section 8.2.1. A line break would become a field of an HTTP/1.1 request. */
const NOT_A_VALUE = /[\0\r\n]|^[ \t]|[ \t]$/;
const NOT_A_NAME = /[^!#$%&'*+\-.^_`|~0-9a-z]/;
/** Methods are case-sensitive (RFC 9110 section 9.1): a target that reads `get` as GET would pass rules on methods. */
const LOWER_CASE = /[a-z]/;
/** Null for a malformed request, which is a stream error (RFC 9113 section 8.1.1). */
export function readRequestFields(raw: readonly string[]): RequestFields | null {
  // Without a prototype: clients name fields as they like.
  const headers = Object.create(null) as Record<string, string>;
  let method = "";
  let scheme = "";
  let path = "";
  let authority: string | null = null;
  let protocol: string | null = null;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? "";
    const value = raw[index + 1] ?? "";
    if (NOT_A_VALUE.test(value)) return null;
    if (name.charCodeAt(0) === 58) {
      if (name === ":method") method = value;
      else if (name === ":path") path = value;
      else if (name === ":scheme") scheme = value;
      else if (name === ":authority") authority = value;
      else if (name === ":protocol") protocol = value;
      else return null;
    } else if (!addField(headers, name, value)) return null;
  }
  const isConnect = method === "CONNECT" && protocol === null;
  if (LOWER_CASE.test(method)) return null;
  if (method === "" || (!isConnect && (path === "" || scheme === ""))) return null;
  // RFC 8441 section 4: `:protocol` belongs to CONNECT, and needs the authority.
  if (protocol !== null && (method !== "CONNECT" || authority === null)) return null;
  if (authority !== null && !addAuthority(headers, authority)) return null;
  const host = headers["host"] ?? "";
  const url = `${scheme}://${host.replaceAll("/", "")}${normalTarget(path)}`;
  const isWebSocket = protocol === "websocket";
  if (isWebSocket) addHandshake(headers);
  return { method: isWebSocket ? "GET" : method, url, headers, isWebSocket };
}

/** RFC 8441 section 5.1: HTTP/2 has no fields for the upgrade and no key, which targets need. */
function addHandshake(headers: Record<string, string>): void {
  headers["connection"] = "upgrade";
  headers["upgrade"] = "websocket";
  headers["sec-websocket-key"] = Buffer.from(
    crypto.getRandomValues(new Uint8Array(16)).buffer,
  ).toString("base64");
}

/** False: the request is malformed. */
function addField(headers: Record<string, string>, name: string, value: string): boolean {
  const known = headers[name];
  if (known !== undefined) {
    // RFC 9113 section 8.2.3; all other repeated fields are lists (RFC 9110 section 5.3).
    headers[name] = `${known}${name === "cookie" ? "; " : ", "}${value}`;
    return true;
  }
  if (name === "" || NOT_A_NAME.test(name) || CONNECTION_FIELDS.has(name)) return false;
  if (name === "te" && value.toLowerCase() !== "trailers") return false;
  headers[name] = value;
  return true;
}

/** RFC 9113 section 8.3.1: `:authority` replaces Host, which must not differ. */
function addAuthority(headers: Record<string, string>, authority: string): boolean {
  const host = headers["host"];
  // A list is no valid Host: the request path responds with 400.
  const differs = host !== undefined && host.toLowerCase() !== authority.toLowerCase();
  headers["host"] = differs ? `${authority}, ${host}` : authority;
  return true;
}
