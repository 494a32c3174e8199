// The head of a target's response: its fields as received, as Headers once something looks at them, and what equal ones share.
import type { ManagementCookies } from "../../http/management-cookies.ts";
import {
  type EditedFields,
  editedFields,
  type EditedLines,
  editedLines,
  type Edits,
  isSame,
} from "../plugin/edited-fields.ts";
import type { OutgoingHead } from "../server/client-stream.ts";
import { CacheTrial } from "./cache-trial.ts";

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
  readonly keepAlive: boolean;
  /** Value of Upgrade, for 101 only; null when Connection does not name it. */
  readonly upgrade: string | null;
  /** Whether the body is an event stream, which must not be buffered. */
  readonly isEventStream: boolean;
  readonly hasContentType: boolean;
  /** Whether it has a Location or Refresh. */
  readonly hasLocation: boolean;
  readonly hasDate: boolean;
  /** Whether it has a request id of the target. */
  readonly hasId: boolean;
  readonly hasCookies: boolean;
  /** The trailers that it announces, without those that may not pass; null: none. */
  readonly trailer: string | null;
}

/** The head of a target's response. Several requests may share it: copy its headers to change them. */
export class ResponseHead implements HeadFacts, OutgoingHead {
  readonly status: number;
  readonly reason: string;
  readonly framing: BodyFraming;
  readonly length: number;
  readonly hasLength: boolean;
  readonly keepAlive: boolean;
  readonly upgrade: string | null;
  readonly isEventStream: boolean;
  readonly hasContentType: boolean;
  readonly hasLocation: boolean;
  readonly hasDate: boolean;
  readonly hasId: boolean;
  readonly hasCookies: boolean;
  readonly trailer: string | null;
  /** The fields without hop-by-hop ones as received, a line each with CRLF; null: `headers` were changed. */
  readonly lines: string | null;
  /** The fields as received, also where `headers` were changed. */
  readonly spelling: string | null;
  /** The same with the request id of the last request; created on first use, updated before each use. */
  withId?: IdentifiedHead;
  /** The same with the header fields that plugins have set. */
  edited?: EditedFields;
  editedLines?: EditedLines;
  #headers: Headers | null;

  /** One of `lines` and `headers` must be there. */
  constructor(
    facts: HeadFacts & { readonly spelling?: string | null },
    lines: string | null,
    headers: Headers | null = null,
  ) {
    this.status = facts.status;
    this.reason = facts.reason;
    this.framing = facts.framing;
    this.length = facts.length;
    this.hasLength = facts.hasLength;
    this.keepAlive = facts.keepAlive;
    this.upgrade = facts.upgrade;
    this.isEventStream = facts.isEventStream;
    this.hasContentType = facts.hasContentType;
    this.hasLocation = facts.hasLocation;
    this.hasDate = facts.hasDate;
    this.hasId = facts.hasId;
    this.hasCookies = facts.hasCookies;
    this.trailer = facts.trailer;
    this.lines = lines;
    this.spelling = lines ?? facts.spelling ?? null;
    this.#headers = headers;
  }

  /** Made on first use. */
  get headers(): Headers {
    this.#headers ??= headersOf(this.lines ?? "");
    return this.#headers;
  }

  /** What engines that write heads as they were need of it for a response with other headers. */
  spelled(status: number): Pick<OutgoingHead, "status" | "spelling" | "reason" | "trailer"> {
    const { spelling, reason, trailer } = this;
    return status === this.status
      ? { status, spelling, reason, trailer }
      : { status, spelling, trailer };
  }

  /** The same with other headers. */
  with(headers: Headers): ResponseHead {
    return new ResponseHead(this, null, headers);
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

/** Without optional whitespace (RFC 9112 section 5). */
export function valueBetween(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

const isBlank = (code: number) => code === 32 || code === 9;

const ID_FIELD = "X-Request-Id";

/** A head with the id of the request that it responds to. */
export class IdentifiedHead implements OutgoingHead {
  readonly status: number;
  readonly reason: string;
  readonly hasContentType: boolean;
  readonly hasLength: boolean;
  readonly length: number;
  readonly hasDate: boolean;
  readonly trailer: string | null;
  id = "";
  readonly #head: ResponseHead;
  #headers: Headers | null = null;

  constructor(head: ResponseHead) {
    this.status = head.status;
    this.reason = head.reason;
    this.hasContentType = head.hasContentType;
    this.hasLength = head.hasLength;
    this.length = head.length;
    this.hasDate = head.hasDate;
    this.trailer = head.trailer;
    this.#head = head;
  }

  get spelling(): string | null {
    return this.#head.spelling;
  }

  /** Null where an id of the target must be replaced. */
  get lines(): string | null {
    const { lines, hasId } = this.#head;
    return lines === null || hasId ? null : `${lines}${ID_FIELD}: ${this.id}\r\n`;
  }

  /** One object: the engine copies it. */
  get headers(): Headers {
    this.#headers ??= new Headers(this.#head.headers);
    this.#headers.set(ID_FIELD, this.id);
    return this.#headers;
  }
}

/** A head in which plugins have set or removed fields. To be sent before the next one of the same head, whose Headers it shares. */
export class EditedHead implements OutgoingHead {
  readonly status: number;
  readonly reason?: string;
  readonly spelling: string | null;
  readonly trailer: string | null;
  /** Of the target's body. */
  readonly length: number;
  readonly #head: ResponseHead;
  readonly #edits: Edits;
  /** Null: this takes Headers; undefined: nothing has asked. */
  #text: EditedLines | null | undefined = undefined;
  #fields: EditedFields | null = null;

  /** `status`: what plugins have made of that of the head. */
  constructor(head: ResponseHead, edits: Edits, status: number) {
    this.status = status;
    if (status === head.status) this.reason = head.reason;
    this.spelling = head.spelling;
    this.trailer = head.trailer;
    this.length = head.length;
    this.#head = head;
    this.#edits = edits;
  }

  get lines(): string | null {
    const text = this.#found();
    if (text === null) return null;
    const { id } = this.#edits;
    return id === null ? text.lines : `${text.lines}${ID_FIELD}: ${id}\r\n`;
  }

  get hasDate(): boolean | undefined {
    return this.#found()?.hasDate;
  }

  get headers(): Headers {
    return (this.#fields ?? this.#made()).headers;
  }

  get hasContentType(): boolean {
    return (this.#fields ?? this.#made()).hasContentType;
  }

  get hasLength(): boolean {
    // Edits that change it take Headers.
    if (this.#fields !== null) return this.#fields.hasLength;
    return this.#found() === null ? this.#made().hasLength : this.#head.hasLength;
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
function linesOf(head: ResponseHead, edits: Edits): EditedLines | null {
  const { lines, hasId, editedLines: known } = head;
  if (lines === null || (hasId && edits.id !== null)) return null;
  const isKnown = known !== undefined && isSame(known.names, edits.names);
  if (isKnown && isSame(known.values, edits.values)) return known;
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
  readonly #parse: ParseHead;
  readonly #cookies: ManagementCookies | null;
  readonly #heads = new Map<string, ResponseHead>();
  readonly #trial = new CacheTrial();

  /** Removes Set-Cookie of `cookies`; null: removes none. */
  constructor(parse: ParseHead, cookies: ManagementCookies | null = null) {
    this.#parse = parse;
    this.#cookies = cookies;
  }

  /** As `parse`; the result is shared. Responses to HEAD are not cached, because their framing differs. */
  read(text: string, isHead: boolean): ResponseHead {
    if (isHead || !this.#trial.isOn()) return this.#parse(text, isHead, this.#cookies);
    const known = this.#heads.get(text);
    if (this.#trial.asked(known !== undefined)) this.#heads.clear();
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
