// Redacts values in log records; knows no format.
import { createHmac } from "node:crypto";
import { networkOf } from "../../pdk/net.ts";
import type { Config } from "./settings.ts";

const REDACTED = "[redacted]";

/** Headers with client addresses, which would reveal a masked address. */
const ADDRESS_FIELDS = [
  ...["x-forwarded-for", "forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip"],
  ...["true-client-ip", "cf-connecting-ip", "fastly-client-ip"],
];

/** Request and response headers with URLs. */
const URL_FIELDS: ReadonlySet<string> = new Set([
  ...["referer", "location", "content-location", "refresh", "link"],
  ...["x-original-url", "x-original-uri", "x-rewrite-url", "x-forwarded-uri"],
]);

/** A parameter anywhere in a text, also in the fragment of a URL, where OAuth leaves tokens. */
const PARAMETER = /([?&#])([^?&#=\s"<>,;]+)=[^&#\s"<>]*/g;

/** Hexadecimal digits of a hashed address. */
const HASH_DIGITS = 16;
const MAX_HASHES = 10_000;

export class Redaction {
  readonly #headers: ReadonlySet<string>;
  readonly #query: ReadonlySet<string>;
  /** The logged text. */
  readonly address: (address: string) => string;

  /** `key`: of address hashes. */
  constructor({ headers, query, ip }: Config["redact"], key: () => Uint8Array) {
    const hidden = ip === "full" ? [] : ADDRESS_FIELDS;
    this.#headers = new Set([...headers.map((name) => name.toLowerCase()), ...hidden]);
    this.#query = new Set(query.map((name) => name.toLowerCase()));
    this.address = ip === "full" ? (text) => text : ip === "mask" ? masked : hasher(key());
  }

  /** The value of a header with this lower-case name. */
  header(name: string, value: string): string {
    if (this.#headers.has(name)) return REDACTED;
    return URL_FIELDS.has(name) ? this.#urls(value) : value;
  }

  /** One URL, or several in a text. */
  #urls(text: string): string {
    if (this.#query.size === 0) return text;
    return text.replace(PARAMETER, (found: string, mark: string, name: string) =>
      this.#hides(name) ? `${mark}${name}=${REDACTED}` : found,
    );
  }

  #hides(name: string): boolean {
    return this.#query.has(decoded(name).toLowerCase());
  }

  cookie(value: string): string {
    return this.#headers.has("cookie") ? REDACTED : value;
  }

  parameter(name: string, value: string): string {
    return this.#query.has(name.toLowerCase()) ? REDACTED : value;
  }

  /** A path or URL with its query. */
  url(text: string): string {
    if (this.#query.size === 0) return text;
    const begin = text.indexOf("?");
    if (begin < 0) return text;
    const hash = text.indexOf("#", begin);
    const end = hash < 0 ? text.length : hash;
    return text.slice(0, begin + 1) + this.query(text.slice(begin + 1, end)) + text.slice(end);
  }

  query(text: string): string {
    if (this.#query.size === 0 || text === "") return text;
    return text
      .split("&")
      .map((part) => {
        const equals = part.indexOf("=");
        const name = equals < 0 ? part : part.slice(0, equals);
        return this.#hides(name) ? `${name}=${REDACTED}` : part;
      })
      .join("&");
  }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll("+", " "));
  } catch {
    return name;
  }
}

/** The network address, which programs still parse as an address. */
const masked = (address: string) =>
  address.includes(":")
    ? networkOf(address, 48).replace(/\/\d+$/, "")
    : address.replace(/\.\d+$/, ".0");

/** Caches hashes, because addresses repeat. */
function hasher(key: Uint8Array): (address: string) => string {
  const known = new Map<string, string>();
  return (address) => {
    const before = known.get(address);
    if (before !== undefined) return before;
    const hash = createHmac("sha256", key).update(address).digest("hex").slice(0, HASH_DIGITS);
    if (known.size >= MAX_HASHES) known.clear();
    known.set(address, hash);
    return hash;
  };
}
