// One header list as a request, strictly (RFC 9113 sections 8.2, 8.3 and 8.5, RFC 8441); knows no connection.
import { type FieldName, fieldName, usualName } from "../../../http/field-name.ts";
import { type FieldPairs, isToken } from "../../../http/fields.ts";
import { HeaderBlock } from "../../../http/header-block.ts";
import { CONNECTION_FIELDS } from "../../../http/hop-by-hop.ts";
import { normalTarget } from "../../../http/request-target.ts";
import { forbiddenInTrailers } from "../../../http/trailer-fields.ts";
import { failures, type ProxyError } from "../../error.ts";
import { CODE, ConnectionError } from "../../http2/frames.ts";

/** Length of a body that is not known. */
export const UNKNOWN = -1;

export interface Http2Head {
  readonly method: string;
  /** Origin form, or `*`. */
  readonly target: string;
  /** `:path`. */
  readonly rawTarget: string;
  readonly fields: HeaderBlock;
  /** Bytes of the body; `UNKNOWN`: no Content-Length. */
  readonly bodyLength: number;
  readonly expectsContinue: boolean;
  /** The value of Priority (RFC 9218 section 5); null: none. */
  readonly priority: string | null;
  /** `:protocol` of an extended CONNECT (RFC 8441); null: none. */
  readonly protocol: string | null;
  /** What the gateway responds with to a list that is no request; null: it is one. */
  readonly problem: ProxyError | null;
}

const NOT_A_NAME = /[^!#$%&'*+\-.^_`|~0-9a-z]/;
/** Methods are case-sensitive (RFC 9110 section 9.1): a target that reads `get` as GET would pass rules on methods. */
const LOWER_CASE = /[a-z]/;
const LENGTH = /^\d{1,15}$/;
/** Of a field in the head of an HTTP/1.1 request, whose limit is the same: colon, space and line break. */
const LINE_BYTES = 4;
/** A list over the limit gets 431. One that is so many times as long, and some more, ends the connection. */
const MOST_TIMES = 4;
const EXTRA_BYTES = 65_536;

/** What the gateway reads of a list itself. */
const KINDS = [
  "",
  ":method",
  ":scheme",
  ":authority",
  ":path",
  ":protocol",
  "host",
  "content-length",
  "cookie",
  "te",
  "expect",
  "priority",
] as const;
const KIND = Object.fromEntries(KINDS.map((name, at) => [name, at])) as Record<
  (typeof KINDS)[number],
  number
>;
const LAST_PSEUDO = KIND[":protocol"];
const NOT_VALID = -1;

interface ListedName {
  readonly field: FieldName;
  /** One of `KIND`, 0 for all others; `NOT_VALID`. */
  readonly kind: number;
}

const HOST = fieldName("Host");
const HANDSHAKE = [fieldName("Connection"), fieldName("Upgrade"), fieldName("Sec-WebSocket-Key")];
const listed = new Map<string, ListedName>();
const MAX_LISTED = 1000;
const MAX_NAME_LENGTH = 64;

function listedName(name: string): ListedName {
  const known = listed.get(name);
  if (known !== undefined) return known;
  const kind = kindOf(name);
  const made = { field: kind === NOT_VALID ? HOST : usualName(name), kind };
  if (listed.size >= MAX_LISTED) listed.clear();
  if (name.length <= MAX_NAME_LENGTH) listed.set(name, made);
  return made;
}

function kindOf(name: string): number {
  const kind = (KINDS as readonly string[]).indexOf(name);
  if (kind > 0) return kind;
  return name === "" || NOT_A_NAME.test(name) || CONNECTION_FIELDS.has(name) ? NOT_VALID : 0;
}

/** Collects one list after the other. */
export class HeaderList {
  #names: FieldName[] = [];
  #values: string[] = [];
  /** By `KIND`. */
  readonly #pseudo: string[] = new Array<string>(LAST_PSEUDO + 1).fill("");
  #seen = 0;
  #bytes = 0;
  #maxBytes = 0;
  #hasHost = false;
  #length = UNKNOWN;
  #cookieAt = -1;
  #expectsContinue = false;
  #priority: string | null = null;
  #problem: string | null = null;

  begin(maxBytes: number): void {
    this.#names = [];
    this.#values = [];
    this.#seen = 0;
    this.#bytes = 0;
    this.#maxBytes = maxBytes;
    this.#hasHost = false;
    this.#length = UNKNOWN;
    this.#cookieAt = -1;
    this.#expectsContinue = false;
    this.#priority = null;
    this.#problem = null;
  }

  readonly add = (name: string, value: string, isValid: boolean): void => {
    this.#bytes += name.length + value.length + LINE_BYTES;
    if (this.#bytes > this.#maxBytes) return this.#addToLong();
    if (!isValid) this.#problem = "a header field of the request is not valid";
    const { field, kind } = listedName(name);
    if (kind !== 0 && !this.#read(kind, value)) return;
    this.#names.push(field);
    this.#values.push(value);
  };

  /** The rest is decoded for the table only, unless it is made to grow (an HPACK bomb). */
  #addToLong(): void {
    if (this.#bytes <= MOST_TIMES * this.#maxBytes + EXTRA_BYTES) return;
    throw new ConnectionError(CODE.enhanceYourCalm, "an HTTP/2 header block is too long", "heads");
  }

  /** False: it is not one of the fields, or not one more. */
  #read(kind: number, value: string): boolean {
    if (kind === NOT_VALID) this.#problem = "a header field of the request is not valid";
    else if (kind <= LAST_PSEUDO) this.#addPseudo(kind, value);
    else if (kind === KIND.host) this.#addHost(value);
    else if (kind === KIND["content-length"]) return this.#addLength(value);
    else if (kind === KIND.cookie) return this.#addCookie(value);
    else {
      if (kind === KIND.te && value.toLowerCase() !== "trailers")
        this.#problem = "the field TE of the request is not valid";
      if (kind === KIND.expect) this.#expectsContinue = value.toLowerCase() === "100-continue";
      if (kind === KIND.priority)
        this.#priority = this.#priority === null ? value : `${this.#priority}, ${value}`;
      return true;
    }
    return false;
  }

  #addPseudo(kind: number, value: string): void {
    const bit = 1 << kind;
    if ((this.#seen & bit) !== 0 || this.#hasHost || this.#names.length > 0)
      this.#problem = "a pseudo field of the request is not valid";
    this.#seen |= bit;
    this.#pseudo[kind] = value;
  }

  /** RFC 9113 section 8.3.1: `:authority` replaces Host, which must not differ. Written first, where it stands alone. */
  #addHost(value: string): void {
    const isSame =
      !this.#has(":authority") ||
      (this.#pseudo[KIND[":authority"]] ?? "").toLowerCase() === value.toLowerCase();
    if (this.#hasHost || !isSame) this.#problem = "the request has two hosts";
    if (!this.#has(":authority")) {
      this.#names.push(HOST);
      this.#values.push(value);
    }
    this.#hasHost = true;
  }

  #addLength(value: string): boolean {
    if (this.#length !== UNKNOWN) this.#problem = "the request has two Content-Length fields";
    if (!LENGTH.test(value)) this.#problem = "the request's Content-Length is not a number";
    this.#length = Number(value);
    return true;
  }

  /** RFC 9113 section 8.2.3: clients may split it. */
  #addCookie(value: string): boolean {
    const at = this.#cookieAt;
    if (at >= 0) {
      this.#values[at] = `${this.#values[at]}; ${value}`;
      return false;
    }
    this.#cookieAt = this.#names.length;
    return true;
  }

  #has(name: (typeof KINDS)[number]): boolean {
    return (this.#seen & (1 << KIND[name])) !== 0;
  }

  /** What the list is as a request. `isLast`: no body follows. */
  request(isLast: boolean): Http2Head {
    const method = this.#has(":method") ? (this.#pseudo[KIND[":method"]] ?? "") : "";
    const path = this.#has(":path") ? (this.#pseudo[KIND[":path"]] ?? "") : "";
    const protocol = this.#has(":protocol") ? (this.#pseudo[KIND[":protocol"]] ?? "") : null;
    const problem = this.#problemOf(method, path, isLast);
    if (problem === null && this.#has(":authority")) {
      this.#names.unshift(HOST);
      this.#values.unshift(this.#pseudo[KIND[":authority"]] ?? "");
    }
    const isWebSocket = protocol === "websocket";
    if (isWebSocket) this.#addHandshake();
    return {
      method: isWebSocket ? "GET" : method || "GET",
      target: path === "*" && method === "OPTIONS" ? path : normalTarget(path),
      rawTarget: path,
      fields: new HeaderBlock(this.#names, this.#values),
      bodyLength: this.#length,
      expectsContinue: this.#expectsContinue && !isLast,
      priority: this.#priority,
      protocol,
      problem,
    };
  }

  #problemOf(method: string, path: string, isLast: boolean): ProxyError | null {
    if (this.#bytes > this.#maxBytes) return failures.headTooLarge;
    if (this.#problem !== null) return failures.badRequest(this.#problem);
    if (!isToken(method) || LOWER_CASE.test(method))
      return failures.badRequest("the method of the request is not valid");
    const hasProtocol = this.#has(":protocol");
    const isConnect = method === "CONNECT" && !hasProtocol;
    const hasTarget = path !== "" && this.#has(":scheme") && this.#pseudo[KIND[":scheme"]] !== "";
    if (!isConnect && !hasTarget) return failures.badRequest("the request has no target");
    // RFC 8441 section 4.
    if (hasProtocol && (method !== "CONNECT" || !this.#has(":authority") || isLast))
      return failures.badRequest("the field :protocol of the request is not valid");
    if (isLast && this.#length > 0)
      return failures.badRequest("the request has a Content-Length and no body");
    return null;
  }

  /** RFC 8441 section 5.1: HTTP/2 has no fields for the upgrade and no key, which targets need. */
  #addHandshake(): void {
    const key = Buffer.from(crypto.getRandomValues(new Uint8Array(16)).buffer).toString("base64");
    this.#names.push(...HANDSHAKE);
    this.#values.push("upgrade", "websocket", key);
  }

  /** What the list is as trailers, without those that no recipient may merge (RFC 9110 section 6.5.1); null: not valid. */
  trailers(): FieldPairs | null {
    if (this.#problem !== null || this.#seen !== 0 || this.#bytes > this.#maxBytes) return null;
    const pairs: [string, string][] = [];
    for (const [at, { lower }] of this.#names.entries())
      if (!forbiddenInTrailers(lower)) pairs.push([lower, this.#values[at] ?? ""]);
    return pairs;
  }
}
