// Signed tokens in forms that the library does not write: other headers, and other texts for the same bytes.
import type { LyingProvider } from "./lying-provider.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** The same bytes in another text: the last character has bits that mean nothing (RFC 4648 section 3.5). */
export function otherText(part: string): string {
  if (part.length % 4 < 2) throw new Error("every bit of the last character means something");
  const last = ALPHABET.indexOf(part.at(-1) ?? "");
  const other = part.slice(0, -1) + ALPHABET[last + 1];
  if (!Buffer.from(other, "base64url").equals(Buffer.from(part, "base64url")))
    throw new Error(`${other} is not the same as ${part}`);
  return other;
}

/** The token with its signature in another text. */
export const withOtherSignature = (token: string) =>
  token.replace(/[^.]+$/, (signature) => otherText(signature));

/** JSON whose base64url leaves bits over, so that it has several texts. */
function encode(value: object): string {
  let text = JSON.stringify(value);
  while (Buffer.byteLength(text) % 3 === 0) text += " ";
  return Buffer.from(text).toString("base64url");
}

interface Form {
  readonly header?: Readonly<Record<string, unknown>>;
  /** Changes header and claims after they were encoded and before they are signed. */
  readonly spell?: (header: string, claims: string) => [header: string, claims: string];
}

/** Signs as the provider does, whatever the form. */
export const signInForm =
  ({ header = {}, spell = (...parts) => parts }: Form) =>
  async (claims: Record<string, unknown>, { signing }: LyingProvider): Promise<string> => {
    const kid = signing.jwk.kid;
    const head = { alg: "ES256", ...(kid === undefined ? {} : { kid }), ...header };
    const input = spell(encode(head), encode(claims)).join(".");
    const signature = await crypto.subtle.sign(
      { name: "ECDSA", hash: "SHA-256" },
      signing.key as CryptoKey,
      new TextEncoder().encode(input),
    );
    return `${input}.${Buffer.from(signature).toString("base64url")}`;
  };

/** Types of the header that no id token has (RFC 7519 section 5.1). */
export const otherTypes = [
  ...["at+jwt", "application/at+jwt", "logout+jwt", "secevent+jwt", "JOSE", "JWE", "", " JWT"],
  ...[null, 5, ["JWT"], { JWT: true }],
];

/** Ways to write a token that mean the same to a lenient reader. */
export const otherForms: readonly {
  readonly why: string;
  readonly sign: (claims: Record<string, unknown>, provider: LyingProvider) => Promise<string>;
}[] = [
  {
    why: "another text of the same signature",
    sign: async (...all) => withOtherSignature(await signInForm({})(...all)),
  },
  {
    why: "another text of the same header, signed",
    sign: signInForm({ spell: (header, claims) => [otherText(header), claims] }),
  },
  {
    why: "another text of the same claims, signed",
    sign: signInForm({ spell: (header, claims) => [header, otherText(claims)] }),
  },
  {
    why: "padding behind the signature",
    sign: async (...all) => `${await signInForm({})(...all)}==`,
  },
  {
    why: "padding behind the claims, signed",
    sign: signInForm({
      spell: (header, claims) => [header, claims.padEnd(Math.ceil(claims.length / 4) * 4, "=")],
    }),
  },
  {
    why: "white space behind the signature",
    sign: async (...all) => `${await signInForm({})(...all)} `,
  },
  {
    why: "a line break in the claims, signed",
    sign: signInForm({
      spell: (header, claims) => [header, `${claims.slice(0, 8)}\n${claims.slice(8)}`],
    }),
  },
];
