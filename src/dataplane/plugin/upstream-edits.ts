// Changes that plugins make to a request before it goes upstream; knows no connection.
import { hyphenated, isFieldValue, isToken } from "../../http/fields.ts";
import { GATEWAY_FIELDS } from "../../http/gateway-fields.ts";
import { queryValue } from "../../http/query.ts";
import { canonicalPath, isQuery } from "../../http/request-target.ts";
import { parseAuthority } from "../../http/authority.ts";
import type { UpstreamRequest } from "../../pdk/context.ts";
import { IDENTITY_FIELDS } from "./identity-fields.ts";

/** The client's request. */
interface EditedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  header(name: string): string | null;
}

/** Looks up services. */
interface Services {
  hasService(id: string): boolean;
}

/** Lives as long as the request; created when the first plugin changes something. */
export class UpstreamEdits implements UpstreamRequest {
  readonly #request: EditedRequest;
  readonly #services: Services;
  /** Lines by lower-case name, which replace the client's. */
  #fields: FieldLines | null = null;
  /** Lines that name the client. */
  identity = "";
  #method: string | null = null;
  #path: string | null = null;
  #query: string | null = null;
  host: string | null = null;
  serviceId: string | null = null;
  body: Uint8Array | null = null;
  /** Whether a plugin translates the request to gRPC. */
  isGrpc = false;

  constructor(request: EditedRequest, services: Services) {
    this.#request = request;
    this.#services = services;
  }

  /** Created when the first field changes. */
  get #own(): FieldLines {
    this.#fields ??= new FieldLines();
    return this.#fields;
  }

  get method(): string {
    return this.#method ?? this.#request.method;
  }

  get path(): string {
    return this.#path ?? this.#request.path;
  }

  get query(): string {
    return this.#query ?? this.#request.query;
  }

  /** The same edits for a copy of the request. */
  copyFor(request: EditedRequest): UpstreamEdits {
    const copy = new UpstreamEdits(request, this.#services);
    if (this.#fields !== null) copy.#own.addAll(this.#fields);
    copy.identity = this.identity;
    copy.#method = this.#method;
    copy.#path = this.#path;
    copy.#query = this.#query;
    copy.host = this.host;
    copy.serviceId = this.serviceId;
    copy.isGrpc = this.isGrpc;
    return copy;
  }

  /** Whether the path is final: neither stripped nor rewritten by the route. */
  get hasOwnPath(): boolean {
    return this.#path !== null;
  }

  /** Whether the query differs from the client's. */
  get hasOwnQuery(): boolean {
    return this.#query !== null;
  }

  header(name: string): string | null {
    const lower = name.toLowerCase();
    const own = this.#fields?.get(lower);
    if (own !== undefined) return valuesIn(own, lower);
    return (
      valuesIn(this.identity, lower) ??
      (IDENTITY_FIELDS.has(lower) ? null : this.#request.header(lower))
    );
  }

  snapshot(): (name: string) => string | null {
    if (this.#fields === null && this.identity === "") {
      const request = this.#request;
      return (name) => {
        const lower = name.toLowerCase();
        return IDENTITY_FIELDS.has(lower) ? null : request.header(lower);
      };
    }
    const copy = this.copyFor(this.#request);
    return (name) => copy.header(name);
  }

  get changed(): readonly string[] {
    const ofIdentity = this.identity.split("\r\n").map(nameOf);
    return [...(this.#fields?.names ?? []), ...ofIdentity.filter((name) => name !== "")];
  }

  setHeader(name: string, value: string): void {
    this.#own.set(checkedName(name), `${name}: ${checkedValue(value)}\r\n`);
  }

  addHeader(name: string, value: string): void {
    const key = checkedName(name);
    // `header` hides fields that only the gateway may set.
    const present = this.header(key);
    const before = this.#own.get(key) ?? (present === null ? "" : `${name}: ${present}\r\n`);
    this.#own.set(key, `${before}${name}: ${checkedValue(value)}\r\n`);
  }

  removeHeader(name: string): void {
    this.#own.set(checkedName(name), "");
  }

  removeCookie(name: string): void {
    const cookies = this.header("cookie");
    if (cookies === null) return;
    const left = cookies
      .split(";")
      .map((pair) => pair.trim())
      .filter((pair) => pair !== "" && (pair.split("=")[0] ?? "").trim() !== name);
    this.#own.set("cookie", left.length === 0 ? "" : `Cookie: ${left.join("; ")}\r\n`);
  }

  removeQuery(name: string): void {
    this.setQuery(name, null);
  }

  setQuery(name: string, value: string | null): void {
    const parts = this.query
      .split("&")
      .filter((part) => part !== "" && queryValue(part, name) === null);
    if (value !== null) parts.push(`${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
    this.#query = parts.join("&");
  }

  setWholeQuery(query: string): void {
    if (!isQuery(query)) throw new TypeError("the query is not valid");
    this.#query = query;
  }

  setMethod(method: string): void {
    if (!isToken(method) || method === "CONNECT" || method === "TRACE")
      throw new TypeError("the method is not valid");
    this.#method = method;
  }

  setPath(path: string): void {
    const canonical = canonicalPath(path);
    if (canonical === null || !path.startsWith("/")) throw new TypeError("the path is not valid");
    this.#path = canonical;
  }

  setHost(host: string): void {
    if (parseAuthority(host) === null) throw new TypeError("the host is not valid");
    this.host = host;
  }

  setGrpc(contentType: string): void {
    this.setHeader("Content-Type", contentType);
    this.isGrpc = true;
  }

  setService(id: string): boolean {
    if (!this.#services.hasService(id)) return false;
    this.serviceId = id;
    return true;
  }

  setBody(body: Uint8Array): void {
    this.body = body;
  }

  /**
   * Whether the client's field of this lower-case name is dropped. Applications may read `remote_user` or `remote.user` as the
   * field `Remote-User` that a plugin has set or removed.
   */
  replaces(name: string): boolean {
    const fields = this.#fields;
    if (fields === null || !fields.mayHave(name)) return false;
    return fields.has(name) || fields.hasAlias(name);
  }

  /** The lines of all fields to send. */
  lines(): string {
    const fields = this.#fields;
    if (fields === null) return this.identity;
    return (this.identity === "" ? "" : withoutEdited(this.identity, fields)) + fields.joined();
  }
}

/** A plugin's own edits of identity fields replace the gateway's lines. */
function withoutEdited(identity: string, { names }: FieldLines): string {
  const replaced = names.filter((name) => IDENTITY_FIELDS.has(name));
  if (replaced.length === 0) return identity;
  const kept = identity
    .split("\r\n")
    .filter((line) => line !== "" && !replaced.includes(nameOf(line)));
  return kept.map((line) => `${line}\r\n`).join("");
}

/** Lines by name. There are few, and each field of a request is looked up: a map would be slower. */
class FieldLines {
  readonly names: string[] = [];
  readonly #lines: string[] = [];
  /** A bit set of the lengths of names. */
  #lengths = 0;

  /** False: there is no such name; true: there may be. */
  mayHave({ length }: string): boolean {
    return (this.#lengths & (1 << (length & 31))) !== 0;
  }

  has(name: string): boolean {
    return this.names.includes(name);
  }

  /** Whether applications may read one of the names as this one. */
  hasAlias(name: string): boolean {
    for (const own of this.names)
      if (own.length === name.length && hyphenated(own) === hyphenated(name)) return true;
    return false;
  }

  /** Empty: the client's field is removed. */
  get(name: string): string | undefined {
    return this.mayHave(name) ? this.#lines[this.names.indexOf(name)] : undefined;
  }

  set(name: string, lines: string): void {
    const at = this.mayHave(name) ? this.names.indexOf(name) : -1;
    if (at !== -1) {
      this.#lines[at] = lines;
      return;
    }
    this.names.push(name);
    this.#lines.push(lines);
    this.#lengths |= 1 << (name.length & 31);
  }

  addAll(other: FieldLines): void {
    for (let at = 0; at < other.names.length; at++)
      this.set(other.names[at] ?? "", other.#lines[at] ?? "");
  }

  joined(): string {
    let all = "";
    for (const lines of this.#lines) all += lines;
    return all;
  }
}

/** The name of a line, in lower case. */
const nameOf = (line: string): string => line.slice(0, line.indexOf(":")).toLowerCase();

/** The values of a field in these lines, null when there is none. */
function valuesIn(lines: string, name: string): string | null {
  if (lines === "") return null;
  const values = lines
    .split("\r\n")
    .filter((line) => nameOf(line) === name)
    .map((line) => line.slice(name.length + 2));
  return values.length === 0 ? null : values.join(", ");
}

/** Names that have passed the check: plugins set the same few again and again. */
const validNames = new Map<string, string>();
const MAX_NAMES = 1000;

function checkedName(name: string): string {
  const known = validNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  if (!isToken(lower)) throw new TypeError("the name of the header is not valid");
  if (GATEWAY_FIELDS.has(lower))
    throw new TypeError(`the header ${lower} is reserved for the gateway`);
  if (validNames.size < MAX_NAMES) validNames.set(name, lower);
  return lower;
}

function checkedValue(value: string): string {
  if (!isFieldValue(value)) throw new TypeError("the value of the header is not valid");
  return value;
}
