// Sets and deletes the cookies of the management API; knows no session.
import { serializeCookie } from "oslo/cookie";
import type { ManagementCookies } from "../http/management-cookies.ts";
import { SESSION_SECONDS } from "./sessions.ts";

/** Creates the values of Set-Cookie fields. */
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
   * Sets the new cookie and deletes those of the request with other names (`sent`, the Cookie field), which may open the
   * session of another user.
   */
  set(value: string, isSecure: boolean, sent: string | null): string[] {
    const name = this.#cookies.session(isSecure);
    const others = this.#sessionNamesIn(sent).filter((other) => other !== name);
    return [this.#field(name, value, SESSION_SECONDS), ...this.clear(others)];
  }

  /** For a sign-out. Call it before the session ends. */
  clearAll(isSecure: boolean, sent: string | null): string[] {
    return this.clear([
      ...new Set([this.#cookies.session(isSecure), ...this.#sessionNamesIn(sent)]),
    ]);
  }

  /** Deletes the cookies with these names. */
  clear(names: readonly string[]): string[] {
    return names.map((name) => this.#field(name, "", 0));
  }

  #sessionNamesIn(sent: string | null): string[] {
    const signIns = [true, false].map((isSecure) => this.#cookies.signIn(isSecure));
    return this.#cookies.namesIn(sent).filter((name) => !signIns.includes(name));
  }

  /** Lax, so that links from other sites open signed-in pages, but no other cross-site request carries the cookie. */
  #field(name: string, value: string, maxAge: number): string {
    const secure = name === this.#cookies.session(true);
    return serializeCookie(name, value, {
      httpOnly: true,
      sameSite: "lax",
      path: "/",
      maxAge,
      secure,
    });
  }
}
