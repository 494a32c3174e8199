// The cookie that binds a sign-in to the browser that started it; knows no pending sign-in.
import { serializeCookie } from "oslo/cookie";
import { cookieValue } from "../../http/cookie.ts";
import type { ManagementCookies } from "../../http/management-cookies.ts";
import { PENDING_SECONDS } from "./pending.ts";

/** Creates and reads the cookie; `isSecure`: browsers send it over HTTPS only. */
export class BrowserCookie {
  readonly #cookies: ManagementCookies;

  constructor(cookies: ManagementCookies) {
    this.#cookies = cookies;
  }

  /** The secret in a Cookie header field, null when absent. */
  read(field: string | null, isSecure: boolean): string | null {
    return cookieValue(field, this.#cookies.signIn(isSecure));
  }

  /** Value of a Set-Cookie header field that stores the secret until the sign-in expires. */
  set(secret: string, isSecure: boolean): string {
    return this.#field(secret, PENDING_SECONDS, isSecure);
  }

  /** Value of a Set-Cookie header field that deletes the cookie. */
  expire(isSecure: boolean): string {
    return this.#field("", 0, isSecure);
  }

  /** Lax, because the provider redirects the browser to the callback. */
  #field(secret: string, maxAge: number, isSecure: boolean): string {
    return serializeCookie(this.#cookies.signIn(isSecure), secret, {
      httpOnly: true,
      sameSite: "lax",
      // The prefix `__Host-` requires the path `/`; without it, the two endpoints of a sign-in are enough.
      path: isSecure ? "/" : "/api/v1/auth/sso",
      maxAge,
      secure: isSecure,
    });
  }
}
