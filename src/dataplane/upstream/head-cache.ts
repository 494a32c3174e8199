// The heads of a target's responses, parsed; equal ones once, while that pays. Knows no socket.
import type { ManagementCookies } from "../../http/management-cookies.ts";
import type { ResponseHead } from "./response-head.ts";
import { ResponseSyntaxError } from "./response-parser.ts";

/** Parses a whole head; `isHead`: the request was HEAD. No target may set one of `cookies`. */
type ParseHead = (text: string, isHead: boolean, cookies: ManagementCookies | null) => ResponseHead;

/** Cached heads per target: few, because heads contain Date and so repeat within a second or never. */
const MAX_HEADS = 32;

/** Entries between two evaluations of the hit rate. */
export const TRIAL = 128;
/** With fewer hits than this the cache is bypassed for the next `BYPASS` entries. */
const MIN_HITS = 32;
const BYPASS = 8192;

/** Whether a cache of what a target repeats is worth asking. Its users count themselves: a call would cost as much as the count. */
export class HitRate {
  /** Asked for since the last evaluation, and found. */
  seen = 0;
  known = 0;
  /** Above 0: so many entries pass the cache by. */
  bypassed = 0;

  /** After `TRIAL` entries. Returns whether the cache is bypassed from now on, and can be emptied. */
  isPoor(): boolean {
    const isPoor = this.known < MIN_HITS;
    this.seen = 0;
    this.known = 0;
    if (isPoor) this.bypassed = BYPASS;
    return isPoor;
  }
}

/**
 * Under load most heads of a target are equal, and parsing one costs as much as all the rest of a small response: 2
 * microseconds of a request's 30. Where every head differs (a request id, a cookie) the cache is bypassed.
 */
export class HeadCache {
  /** Length of the target's last head, a guess for the next one; 0: none yet. */
  usualBytes = 0;
  readonly #parse: ParseHead;
  readonly #cookies: ManagementCookies | null;
  readonly #parseLenient: ParseHead | null;
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
    this.#parseLenient = parseLenient;
  }

  /** Whether responses are accepted that are not strictly valid; their connections must close. */
  get isLenient(): boolean {
    return this.#parseLenient !== null;
  }

  /** As `read`; null: it has to be tried as a lenient one. */
  readStrict(text: string, isHead: boolean): ResponseHead | null {
    try {
      return this.read(text, isHead);
    } catch (error) {
      if (this.#parseLenient === null || !(error instanceof ResponseSyntaxError)) throw error;
      return null;
    }
  }

  /** A head that `read` rejects. */
  readLenient(text: string, isHead: boolean): ResponseHead {
    return (this.#parseLenient ?? this.#parse)(text, isHead, this.#cookies);
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
