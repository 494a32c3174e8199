// The cookie that binds a sign-in to the browser it was begun in; knows nothing of what it is compared with.
import { cookieValue } from "../../../http/cookie.ts";
import type { ManagementCookies } from "../../../http/management-cookies.ts";
import { PENDING_SECONDS } from "./pending.ts";

/** Makes and reads it; `isSecure`: browsers may send it over HTTPS only. */
export class BrowserCookie {
  readonly #cookies: ManagementCookies;

  constructor(cookies: ManagementCookies) {
    this.#cookies = cookies;
  }

  /** The secret in a Cookie field, null when there is none. */
  read(field: string | null, isSecure: boolean): string | null {
    return cookieValue(field, this.#cookies.signIn(isSecure));
  }

  /** Value of a Set-Cookie field that keeps the secret as long as a sign-in may take. */
  set(secret: string, isSecure: boolean): string {
    return this.#field(secret, PENDING_SECONDS, isSecure);
  }

  /** Value of a Set-Cookie field that takes it away again. */
  expire(isSecure: boolean): string {
    return this.#field("", 0, isSecure);
  }

  /** Lax, because the provider's page leads to the second end of a sign-in. */
  #field(secret: string, maxAge: number, isSecure: boolean): string {
    // The prefix `__Host-` asks for the path `/`; without it the two ends of a sign-in are enough.
    const scope = isSecure ? "Path=/; Secure" : "Path=/api/v1/auth/sso";
    return `${this.#cookies.signIn(isSecure)}=${secret}; Max-Age=${maxAge}; ${scope}; HttpOnly; SameSite=Lax`;
  }
}
