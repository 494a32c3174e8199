// What the library does not check of signed tokens (RFC 7515, RFC 7519): their text, their type, their time of issue; knows no key.

/** Base64url without padding (RFC 7515 section 2), in which the bits that are left over are zero (RFC 4648 section 3.5). */
const PART = "(?:[\\w-]{4})*(?:[\\w-][AQgw]|[\\w-]{2}[AEIMQUYcgkosw048])?";
const COMPACT = new RegExp(`^${PART}\\.${PART}\\.${PART}$`);

/**
 * Whether a compact token has the one text that its bytes have. A decoder drops left-over bits, padding and white space: what
 * tells tokens apart by their text, such as a list of revoked ones, would take one token for several.
 */
export const isCanonicalToken = (token: string): boolean => COMPACT.test(token);

/** What is wrong with an id token whose signature was verified; null: nothing of what is looked at here. */
export function idTokenProblem(
  { header, claims }: { readonly header: object; readonly claims: object },
  { nowS, toleranceS }: { readonly nowS: number; readonly toleranceS: number },
): string | null {
  const { typ } = header as { readonly typ?: unknown };
  const { iat } = claims as { readonly iat?: unknown };
  // RFC 7519 section 5.1; a media type has no case (RFC 7515 section 4.1.9). Logout and access tokens are signed with the same keys.
  if (typ !== undefined && (typeof typ !== "string" || typ.toUpperCase() !== "JWT"))
    return "typ of the id token is not JWT";
  if (typeof iat !== "number" || iat > nowS + toleranceS)
    return "iat of the id token is missing or in the future";
  return null;
}
