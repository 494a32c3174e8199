// Heads of responses: of targets as received, and those of the gateway; as lines, as Headers once something looks at them, and what equal ones share.
import { FieldList, spelledLines } from "../../http/field-list.ts";
import { valueBetween } from "../../http/whitespace.ts";
import {
  type EditedFields,
  editedFields,
  type EditedLines,
  editedLines,
  type Edits,
  ID_FIELD,
  isSame,
} from "../plugin/edited-fields.ts";
import { HitRate, TRIAL } from "./hit-rate.ts";
import type { ManagementCookies } from "../../http/management-cookies.ts";
import type { OutgoingHead } from "../server/client-stream.ts";

/** How the body ends (RFC 9112 section 6.3). */
export type BodyFraming = "none" | "length" | "chunked" | "close";

/** What a head says of the message beside its fields. */
interface HeadFacts {
  readonly status: number;
  /** As received, for engines that send one. */
  readonly reason: string;
  readonly framing: BodyFraming;
  /** Bytes of the body when framing is `length`, else -1. */
  readonly length: number;
  /** Whether the fields have a Content-Length; for HEAD and 304 that of the omitted body. */
  readonly hasLength: boolean;
  /** Whether there is no body, and the head speaks of one: some targets send it. */
  readonly announcesBody: boolean;
  readonly keepAlive: boolean;
  /** How long the target keeps the connection without a request, of its Keep-Alive; 0: it does not say. */
  readonly keepAliveMs: number;
  /** Value of Upgrade, for 101 only; null when Connection does not name it. */
  readonly upgrade: string | null;
  /** Whether the body is an event stream, which must not be buffered. */
  readonly isEventStream: boolean;
  /** Whether it has a Content-Type that is not empty. */
  readonly hasContentType: boolean;
  /** Whether it has a Location or Refresh. */
  readonly hasLocation: boolean;
  readonly hasDate: boolean;
  /** Whether it has a request id of the target. */
  readonly hasId: boolean;
  readonly hasCookies: boolean;
  /** Whether it has a challenge of NTLM or Negotiate: the target's connection is one client's from now on. */
  readonly bindsConnection: boolean;
  /** Whether it refuses the request with challenges of those alone, which HTTP/2 has no connection for. */
  readonly needsHttp1: boolean;
  /** The trailers that it announces, without those that may not pass; null: none. */
  readonly trailer: string | null;
}

/** A head that other responses may have too: nothing changes it, and what is made of it for one of them serves the next. */
export interface SharedHead extends OutgoingHead {
  /** Whether it has a request id. */
  readonly hasId: boolean;
  /** The same with the request id of the last request; created on first use, updated before each use. */
  withId?: IdentifiedHead;
  /** The same with the header fields that plugins have set. */
  edited?: EditedFields;
  editedLines?: EditedLines;
}

/** The head of a target's response. Several requests may share it: copy its headers to change them. */
export class ResponseHead implements HeadFacts, SharedHead {
  readonly status: number;
  readonly reason: string;
  readonly framing: BodyFraming;
  readonly length: number;
  readonly hasLength: boolean;
  readonly announcesBody: boolean;
  readonly keepAlive: boolean;
  readonly keepAliveMs: number;
  readonly upgrade: string | null;
  readonly isEventStream: boolean;
  readonly hasContentType: boolean;
  readonly hasLocation: boolean;
  readonly hasDate: boolean;
  readonly hasId: boolean;
  readonly hasCookies: boolean;
  readonly bindsConnection: boolean;
  readonly needsHttp1: boolean;
  readonly trailer: string | null;
  /** It says nothing of the client's connection. */
  readonly closes = false;
  /** The fields without hop-by-hop ones as received, a line each with CRLF. */
  readonly lines: string;
  withId?: IdentifiedHead;
  edited?: EditedFields;
  editedLines?: EditedLines;
  #headers: Headers | null = null;

  constructor(facts: HeadFacts, lines: string) {
    this.status = facts.status;
    this.reason = facts.reason;
    this.framing = facts.framing;
    this.length = facts.length;
    this.hasLength = facts.hasLength;
    this.announcesBody = facts.announcesBody;
    this.keepAlive = facts.keepAlive;
    this.keepAliveMs = facts.keepAliveMs;
    this.upgrade = facts.upgrade;
    this.isEventStream = facts.isEventStream;
    this.hasContentType = facts.hasContentType;
    this.hasLocation = facts.hasLocation;
    this.hasDate = facts.hasDate;
    this.hasId = facts.hasId;
    this.hasCookies = facts.hasCookies;
    this.bindsConnection = facts.bindsConnection;
    this.needsHttp1 = facts.needsHttp1;
    this.trailer = facts.trailer;
    this.lines = lines;
  }

  /** Made on first use. */
  get headers(): Headers {
    this.#headers ??= headersOf(this.lines);
    return this.#headers;
  }

  /** The same with other lines, in whose values alone they differ. */
  with(lines: string): ResponseHead {
    return new ResponseHead(this, lines);
  }
}

function headersOf(lines: string): Headers {
  const headers = new Headers();
  for (let at = 0; at < lines.length;) {
    const end = lines.indexOf("\r\n", at);
    const colon = lines.indexOf(":", at);
    headers.append(lines.slice(at, colon), valueBetween(lines, colon + 1, end));
    at = end + 2;
  }
  return headers;
}

interface ListFacts {
  readonly status: number;
  /** Of a target, with this status. */
  readonly reason?: string;
  readonly trailer?: string | null;
}

/** A head from a list of fields, which must not be changed from then on. */
export class ListHead implements SharedHead {
  readonly status: number;
  readonly reason?: string;
  readonly trailer: string | null;
  readonly hasContentType: boolean;
  readonly hasLength: boolean;
  readonly hasId: boolean;
  readonly closes: boolean;
  withId?: IdentifiedHead;
  edited?: EditedFields;
  editedLines?: EditedLines;
  readonly #list: FieldList;
  #lines: string | null = null;
  #headers: Headers | null;

  constructor(list: FieldList, { status, reason, trailer = null }: ListFacts) {
    this.status = status;
    if (reason !== undefined) this.reason = reason;
    this.trailer = trailer;
    this.hasContentType = list.hasValue("content-type");
    this.hasLength = list.has("content-length");
    this.hasId = list.has(ID_FIELD);
    this.closes = list.closes;
    this.#list = list;
    this.#headers = list.madeHeaders;
  }

  get lines(): string {
    this.#lines ??= this.#list.lines;
    return this.#lines;
  }

  get hasDate(): boolean {
    return this.#list.has("date");
  }

  get length(): number {
    return this.hasLength ? Number(this.#list.get("content-length")) : -1;
  }

  get headers(): Headers {
    this.#headers ??= new Headers(this.#list.pairs);
    return this.#headers;
  }
}

/** The fields of a head, to be changed. */
export function listOf(head: OutgoingHead): FieldList {
  const list = FieldList.ofLines(head.lines);
  if (head.closes) list.set("Connection", "close");
  return list;
}

/** A head with the id of the request that it responds to. */
export class IdentifiedHead implements OutgoingHead {
  readonly status: number;
  readonly reason?: string;
  readonly hasContentType: boolean;
  readonly hasLength: boolean;
  readonly length: number;
  readonly hasDate: boolean;
  readonly trailer: string | null;
  readonly closes: boolean;
  readonly needsHttp1: boolean;
  id = "";
  readonly #head: SharedHead;
  /** The lines around the id. */
  readonly #before: string;
  readonly #after: string;
  #headers: Headers | null = null;

  constructor(head: SharedHead) {
    this.status = head.status;
    if (head.reason !== undefined) this.reason = head.reason;
    this.hasContentType = head.hasContentType;
    this.hasLength = head.hasLength;
    this.length = head.length;
    this.hasDate = head.hasDate;
    this.trailer = head.trailer ?? null;
    this.closes = head.closes;
    this.needsHttp1 = head.needsHttp1 === true;
    this.#head = head;
    const { lines } = head;
    const own = head.hasId ? ID_LINE.exec(lines) : null;
    this.#before = `${own === null ? `${lines}${ID_FIELD}` : lines.slice(0, own.index) + own[1]}: `;
    const behind = own === null ? "" : lines.slice(own.index + own[0].length);
    this.#after = `\r\n${behind.replace(ID_LINES, "")}`;
  }

  get lines(): string {
    return `${this.#before}${this.id}${this.#after}`;
  }

  /** One object: the engine copies it. */
  get headers(): Headers {
    this.#headers ??= new Headers(this.#head.headers);
    this.#headers.set(ID_FIELD, this.id);
    return this.#headers;
  }
}

const ID_LINE = /^(x-request-id):.*\r\n/im;
const ID_LINES = new RegExp(ID_LINE, "gim");

/** A head in which plugins have set or removed fields. To be sent before the next one of the same head, whose Headers it shares. */
export class EditedHead implements OutgoingHead {
  readonly status: number;
  readonly reason?: string;
  readonly trailer: string | null;
  readonly needsHttp1: boolean;
  readonly #head: SharedHead;
  readonly #edits: Edits;
  /** Null: what it takes to be lines is only known of Headers; undefined: nothing has asked. */
  #text: EditedLines | null | undefined = undefined;
  #fields: EditedFields | null = null;

  /** `status`: what plugins have made of that of the head. */
  constructor(head: SharedHead, edits: Edits, status: number) {
    this.status = status;
    if (status === head.status && head.reason !== undefined) this.reason = head.reason;
    this.trailer = head.trailer ?? null;
    this.needsHttp1 = head.needsHttp1 === true && status === head.status;
    this.#head = head;
    this.#edits = edits;
  }

  get lines(): string {
    const text = this.#found();
    if (text === null) return spelledLines(this.headers, this.#head.lines);
    const { id } = this.#edits;
    return id === null ? text.lines : `${text.lines}${ID_FIELD}: ${id}\r\n`;
  }

  get hasDate(): boolean {
    return this.#found()?.hasDate ?? this.headers.has("date");
  }

  get headers(): Headers {
    return this.#made().headers;
  }

  get hasContentType(): boolean {
    return this.#made().hasContentType;
  }

  // Edits of the length and of the connection take Headers.

  get hasLength(): boolean {
    return this.#found() === null ? this.#made().hasLength : this.#head.hasLength;
  }

  get length(): number {
    if (this.#found() !== null) return this.#head.length;
    return this.hasLength ? Number(this.headers.get("content-length")) : -1;
  }

  get closes(): boolean {
    return this.#found() === null ? this.headers.get("connection") === "close" : this.#head.closes;
  }

  #found(): EditedLines | null {
    if (this.#text === undefined) this.#text = linesOf(this.#head, this.#edits);
    return this.#text;
  }

  #made(): EditedFields {
    this.#fields ??= editedFields(this.#head, this.#head.headers, this.#edits);
    return this.#fields;
  }
}

/** Kept beside the head for the next response. */
function linesOf(head: SharedHead, edits: Edits): EditedLines | null {
  const { lines, hasId, editedLines: known } = head;
  if (hasId && edits.id !== null) return null;
  const isKnown = known !== undefined && !(known.setsId && edits.id !== null);
  if (isKnown && isSame(known.names, edits.names) && isSame(known.values, edits.values))
    return known;
  const made = editedLines(lines, edits);
  if (made !== null) head.editedLines = made;
  return made;
}

/** Parses a whole head; `isHead`: the request was HEAD. No target may set one of `cookies`. */
type ParseHead = (text: string, isHead: boolean, cookies: ManagementCookies | null) => ResponseHead;

/** Cached heads per target: few, because heads contain Date and so repeat within a second or never. */
const MAX_HEADS = 32;

/**
 * Under load most heads of a target are equal, and parsing one costs as much as all the rest of a small response: 2
 * microseconds of a request's 30. Where every head differs (a request id, a cookie) the cache is bypassed.
 */
export class HeadCache {
  /** Length of the target's last head, a guess for the next one; 0: none yet. */
  usualBytes = 0;
  /** Whether responses are accepted that are not strictly valid; their connections must close. */
  readonly isLenient: boolean;
  readonly #parse: ParseHead;
  readonly #cookies: ManagementCookies | null;
  readonly #parseLenient: ParseHead;
  readonly #heads = new Map<string, ResponseHead>();
  readonly #rate = new HitRate();

  /**
   * Removes Set-Cookie of `cookies`; null: removes none. `parseLenient`: of heads that `parse` rejects; null (default): they are
   * errors.
   */
  constructor(
    parse: ParseHead,
    cookies: ManagementCookies | null = null,
    parseLenient: ParseHead | null = null,
  ) {
    this.#parse = parse;
    this.#cookies = cookies;
    this.#parseLenient = parseLenient ?? parse;
    this.isLenient = parseLenient !== null;
  }

  /** A head that `read` rejects. */
  readLenient(text: string, isHead: boolean): ResponseHead {
    return this.#parseLenient(text, isHead, this.#cookies);
  }

  /** As `parse`; the result is shared. Responses to HEAD are not cached, because their framing differs. */
  read(text: string, isHead: boolean): ResponseHead {
    const rate = this.#rate;
    if (isHead || rate.bypassed > 0) {
      if (!isHead) rate.bypassed--;
      return this.#parse(text, isHead, this.#cookies);
    }
    const known = this.#heads.get(text);
    if (known !== undefined) rate.known++;
    if (++rate.seen === TRIAL && rate.isPoor()) this.#heads.clear();
    return known ?? this.#cache(text);
  }

  #cache(text: string): ResponseHead {
    const head = this.#parse(text, false, this.#cookies);
    // Heads with Set-Cookie belong to one client.
    if (head.status < 200 || head.hasCookies) return head;
    if (this.#heads.size >= MAX_HEADS) this.#heads.clear();
    this.#heads.set(text, head);
    return head;
  }
}
