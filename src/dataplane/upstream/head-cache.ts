// Remembers response heads that a target sends again and again, byte for byte; knows no connection.
import type { ManagementCookies } from "../../http/management-cookies.ts";
import { parseResponseHead, type ResponseHead } from "./response-parser.ts";

/** Heads remembered for one target: few, because a head that is not repeated soon is never repeated (it holds the Date). */
const MAX_HEADS = 32;

/** After this many heads it is looked whether remembering pays. */
const TRIAL = 128;

/** When fewer of them than this were known, the cache stands aside for a while. */
const WORTH_IT = 32;
const STAND_ASIDE = 8192;

/**
 * Under load most heads of a target are equal, and to read one costs as much as all the rest of a small answer: 2
 * microseconds of a request's 30. Where every head differs (a request id, a cookie) it stands aside.
 */
export class HeadCache {
  /** Length of the target's last head: the next one is probably as long. 0: none was read yet. */
  usualBytes = 0;
  readonly #cookies: ManagementCookies | null;
  readonly #heads = new Map<string, ResponseHead>();
  #seen = 0;
  #known = 0;
  #standsAside = 0;

  /** `cookies` are left out of heads; null: none are. */
  constructor(cookies: ManagementCookies | null = null) {
    this.#cookies = cookies;
  }

  /** As `parseResponseHead`; the result is shared. HEAD is never remembered, because its body is framed in another way. */
  read(text: string, isHead: boolean): ResponseHead {
    if (isHead || this.#standsAside > 0) {
      if (!isHead) this.#standsAside--;
      return parseResponseHead(text, isHead, this.#cookies);
    }
    const known = this.#heads.get(text);
    if (known !== undefined) this.#known++;
    if (++this.#seen === TRIAL) this.#judge();
    return known ?? this.#remember(text);
  }

  #remember(text: string): ResponseHead {
    const head = parseResponseHead(text, false, this.#cookies);
    // What belongs to one client is not kept longer than its answer takes.
    if (head.status < 200 || head.fields.has("set-cookie")) return head;
    if (this.#heads.size >= MAX_HEADS) this.#heads.clear();
    this.#heads.set(text, head);
    return head;
  }

  #judge(): void {
    if (this.#known < WORTH_IT) {
      this.#standsAside = STAND_ASIDE;
      this.#heads.clear();
    }
    this.#seen = 0;
    this.#known = 0;
  }
}
