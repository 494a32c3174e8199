// The cookie that binds a sign-in to the browser it was begun in; knows nothing of what it is compared with.
import { cookieValue } from "../../../http/cookie.ts";
import { PENDING_SECONDS } from "./pending.ts";

const NAME = "sluice_sso";
/** Sent to the two ends of a sign-in only; Lax, because the provider's page leads to the second one. */
const ATTRIBUTES = "Path=/api/v1/auth/sso; HttpOnly; SameSite=Lax";

/** The secret in a Cookie header, null when there is none. */
export const readBrowserCookie = (header: string | null) => cookieValue(header, NAME);

/** Value of a Set-Cookie header that keeps the secret as long as a sign-in may take. */
export const browserCookie = (secret: string, isSecure: boolean) =>
  `${NAME}=${secret}; Max-Age=${PENDING_SECONDS}; ${ATTRIBUTES}${isSecure ? "; Secure" : ""}`;

/** Value of a Set-Cookie header that takes it away again. */
export const expiredBrowserCookie = (isSecure: boolean) =>
  `${NAME}=; Max-Age=0; ${ATTRIBUTES}${isSecure ? "; Secure" : ""}`;
