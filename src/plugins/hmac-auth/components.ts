// Values of the components of a message signature (RFC 9421 section 2); knows no key and no signature.
import {
  type InnerList,
  type Item,
  parseDictionary,
  parseItem,
  parseList,
  serializeDictionary,
  serializeInnerList,
  serializeItem,
  serializeList,
} from "structured-headers";
import { isToken } from "../../pdk/http.ts";

/** The signable parts of a request. */
export interface SignedMessage {
  readonly method: string;
  readonly scheme: "http" | "https";
  /** Host header as sent. */
  readonly authority: string;
  readonly path: string;
  /** Without `?`. */
  readonly query: string;
  /** Path and query as in the request line. */
  readonly target: string;
  /** Value by lower-case name, repeated ones joined; null: absent. */
  header(name: string): string | null;
}

/** The value; null when the request has no such component, or its value is unknown. */
export function componentValue(component: Item, message: SignedMessage): string | null {
  const [name, parameters] = component;
  if (typeof name !== "string") return null;
  if (name === "@query-param") return queryParameter(component, message);
  if (name.startsWith("@")) return parameters.size === 0 ? derived(name, message) : null;
  if (!isToken(name) || name !== name.toLowerCase()) return null;
  const value = message.header(name);
  return value === null ? null : fieldValue(value.trim(), component);
}

function derived(name: string, message: SignedMessage): string | null {
  switch (name) {
    case "@method":
      return message.method;
    case "@target-uri":
      return `${message.scheme}://${authorityOf(message)}${message.target}`;
    case "@authority":
      return authorityOf(message);
    case "@scheme":
      return message.scheme;
    case "@request-target":
      return message.target;
    case "@path":
      return message.path;
    case "@query":
      return `?${message.query}`;
    default:
      return null;
  }
}

/** RFC 9110 section 4.2.3: lower case, without the port that the scheme implies. */
function authorityOf({ authority, scheme }: SignedMessage): string {
  const port = scheme === "https" ? /:443$/ : /:80$/;
  return authority.toLowerCase().replace(port, "");
}

/** Section 2.2.8. A repeated parameter cannot be signed. */
function queryParameter([, parameters]: Item, { query }: SignedMessage): string | null {
  const name = parameters.get("name");
  if (typeof name !== "string" || parameters.size !== 1) return null;
  const values = [...new URLSearchParams(query)].filter(([key]) => encodeParameter(key) === name);
  const [only] = values;
  return values.length === 1 && only !== undefined ? encodeParameter(only[1]) : null;
}

const encodeParameter = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replace(
    /[!'()~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Structured fields of known type, for `sf` (section 2.1.1). */
const structured: Readonly<Record<string, (value: string) => string>> = {
  "content-digest": (value) => serializeDictionary(parseDictionary(value)),
  "repr-digest": (value) => serializeDictionary(parseDictionary(value)),
  signature: (value) => serializeDictionary(parseDictionary(value)),
  "signature-input": (value) => serializeDictionary(parseDictionary(value)),
  priority: (value) => serializeDictionary(parseDictionary(value)),
  "client-cert": (value) => serializeItem(parseItem(value)),
  "client-cert-chain": (value) => serializeList(parseList(value)),
};

function fieldValue(value: string, [name, parameters]: Item): string | null {
  if (parameters.size === 0) return value;
  const key = parameters.get("key");
  const isStrict = parameters.get("sf") === true;
  // Others need what the gateway does not have: single field lines, trailers, another message.
  if (parameters.size !== 1) return null;
  try {
    if (typeof key === "string") return memberOf(value, key);
    const rewrite =
      isStrict && Object.hasOwn(structured, String(name)) ? structured[String(name)] : undefined;
    return rewrite?.(value) ?? null;
  } catch {
    return null;
  }
}

/** Section 2.1.2. */
function memberOf(value: string, key: string): string | null {
  const member = parseDictionary(value).get(key);
  if (member === undefined) return null;
  return isInnerList(member) ? serializeInnerList(member) : serializeItem(member);
}

export const isInnerList = (member: Item | InnerList): member is InnerList =>
  Array.isArray(member[0]);
