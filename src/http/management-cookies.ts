// The cookies of the management API: their names, and their removal from proxied messages; knows no session.
import { type CookiePair, cookiePairs } from "./cookie.ts";

/** Part of every name below. A field without it holds no cookie of the management API. */
export const STEM = "sluice_session";

/** The name in earlier versions, the same for all installations. Version 0.2 drops it: sessions last seven days. */
const FORMER_NAME = STEM;

/** RFC 6265bis section 4.1.3.2: browsers accept it only over HTTPS, from this host and for all paths. */
const HOST_PREFIX = "__Host-";

/** A session cookie of a client. */
export interface SessionCookie {
  readonly name: string;
  readonly value: string;
  /** Whether the name has the prefix `__Host-`. */
  readonly isSecure: boolean;
}

/**
 * Cookies ignore ports: a browser sends those of the management API to every listener of the same host. Their names hold
 * a part of the installation's id, so that this gateway recognizes its own and forwards those of another gateway.
 */
export class ManagementCookies {
  readonly #session: string;
  readonly #signIn: string;
  readonly #isLive: (value: string) => boolean;

  /** `isLive` returns whether a value belongs to an active session. */
  constructor(installationId: string, isLive: (value: string) => boolean) {
    // The last digits are random. The first ones of a UUIDv7 are the time: gateways that start together share them.
    this.#session = `${STEM}_${installationId.replaceAll("-", "").slice(-8)}`;
    this.#signIn = `${this.#session}_sso`;
    this.#isLive = isLive;
  }

  /** Name of the session cookie. `isSecure`: browsers may only send it over HTTPS. */
  session(isSecure: boolean): string {
    return prefixed(this.#session, isSecure);
  }

  /** Name of the cookie that binds a single sign-on to its browser. */
  signIn(isSecure: boolean): string {
    return prefixed(this.#signIn, isSecure);
  }

  /** All cookies in a Cookie field that may open a session, in order. */
  sessionsIn(field: string | null): SessionCookie[] {
    if (field?.includes(STEM) !== true) return [];
    const secure = this.session(true);
    const names = [secure, this.#session, FORMER_NAME];
    return cookiePairs(field)
      .filter(({ name }) => names.includes(name))
      .map(({ name, value }) => ({ name, value, isSecure: name === secure }));
  }

  /** Names of the cookies of the management API in a Cookie field, each once. */
  namesIn(field: string | null): string[] {
    if (field?.includes(STEM) !== true) return [];
    const own = cookiePairs(field).filter((pair) => this.#isOwn(pair));
    return [...new Set(own.map(({ name }) => name))];
  }

  /** A Cookie field without the cookies of the management API: the same text when it holds none, null when it becomes empty. */
  without(field: string): string | null {
    if (!field.includes(STEM)) return field;
    const pairs = cookiePairs(field);
    const others = pairs.filter((pair) => !this.#isOwn(pair));
    if (others.length === pairs.length) return field;
    return others.length === 0 ? null : others.map(({ text }) => text).join("; ");
  }

  /** Whether a Set-Cookie field sets or deletes a cookie of the management API. */
  isSetBy(field: string): boolean {
    if (!field.includes(STEM)) return false;
    // Browsers send a cookie without a name as its value alone: `=name=value` comes back as `name=value`.
    const pair = field.split(";", 1)[0]?.replace(/^[\t =]+/, "") ?? "";
    return cookiePairs(pair).some((one) => this.#isOwn(one));
  }

  #isOwn({ name, value }: CookiePair): boolean {
    const plain = name.startsWith(HOST_PREFIX) ? name.slice(HOST_PREFIX.length) : name;
    if (plain === this.#session || plain === this.#signIn) return true;
    return name === FORMER_NAME && this.#isLive(value);
  }
}

const prefixed = (name: string, isSecure: boolean) => (isSecure ? HOST_PREFIX + name : name);
