// Reads user name and password from an Authorization header; knows nothing of how they are checked.

export interface BasicLogin {
  readonly username: string;
  readonly password: string;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** RFC 7617 section 2; null: not Basic, or malformed. */
export function readBasicLogin(header: string): BasicLogin | null {
  const [, token] = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header) ?? [];
  if (token === undefined) return null;
  try {
    const text = utf8.decode(Buffer.from(token, "base64"));
    const colon = text.indexOf(":");
    if (colon < 0 || /\p{Cc}/u.test(text)) return null;
    return { username: text.slice(0, colon), password: text.slice(colon + 1) };
  } catch {
    return null;
  }
}
