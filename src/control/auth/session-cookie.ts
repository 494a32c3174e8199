// The cookies of the management API as they are set and taken back; knows no session.
import type { ManagementCookies } from "../../http/management-cookies.ts";
import { SESSION_SECONDS } from "./sessions.ts";

/** Makes the values of Set-Cookie fields. */
export class SessionCookies {
  readonly #cookies: ManagementCookies;

  constructor(cookies: ManagementCookies) {
    this.#cookies = cookies;
  }

  /** Name of the cookie; `isSecure`: browsers may send it over HTTPS only. */
  nameOf(isSecure: boolean): string {
    return this.#cookies.session(isSecure);
  }

  /**
   * The new cookie first. Those that came with the request under other names (`sent`, the Cookie field) are taken back: they
   * may open the session of somebody else.
   */
  set(value: string, isSecure: boolean, sent: string | null): string[] {
    const name = this.#cookies.session(isSecure);
    const others = this.#sessionNamesIn(sent).filter((other) => other !== name);
    return [this.#field(name, value, SESSION_SECONDS), ...this.clear(others)];
  }

  /** For a client that signs out. To be called before its session ends. */
  clearAll(isSecure: boolean, sent: string | null): string[] {
    return this.clear([
      ...new Set([this.#cookies.session(isSecure), ...this.#sessionNamesIn(sent)]),
    ]);
  }

  /** Takes the cookies with these names back. */
  clear(names: readonly string[]): string[] {
    return names.map((name) => this.#field(name, "", 0));
  }

  #sessionNamesIn(sent: string | null): string[] {
    const signIns = [true, false].map((isSecure) => this.#cookies.signIn(isSecure));
    return this.#cookies.namesIn(sent).filter((name) => !signIns.includes(name));
  }

  /** Lax, so that a link from elsewhere leads to a page that is signed in, and nothing else is sent along. */
  #field(name: string, value: string, maxAge: number): string {
    const secure = name === this.#cookies.session(true) ? "; Secure" : "";
    return `${name}=${value}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${maxAge}${secure}`;
  }
}
