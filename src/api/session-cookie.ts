// The cookie of a session as it is set and taken back; knows no session.
import { SESSION_COOKIE, SESSION_SECONDS } from "../control/auth/sessions.ts";

/** Value of Set-Cookie. Lax, so that a link from elsewhere leads to a page that is signed in, and nothing else is sent along. */
export const sessionCookie = (value: string, isSecure: boolean): string =>
  cookieOf(value, SESSION_SECONDS, isSecure);

/** Takes the cookie back. */
export const expiredSessionCookie = (isSecure: boolean): string => cookieOf("", 0, isSecure);

function cookieOf(value: string, maxAge: number, isSecure: boolean): string {
  const secure = isSecure ? "; Secure" : "";
  return `${SESSION_COOKIE}=${value}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${maxAge}${secure}`;
}
