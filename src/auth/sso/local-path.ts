// Allows only local paths as the redirect after a sign-in; knows no sign-in.

const ORIGIN = "http://gateway.invalid";
const MAX_LENGTH = 2048;

/** The path, safe for a Location header, or null when it could lead to another host. */
export function toLocalPath(text: string): string | null {
  if (text.length > MAX_LENGTH || /[\u0000-\u001f\u007f]/.test(text)) return null;
  // Browsers treat a backslash as a slash, and two slashes start a host.
  if (!/^\/(?![/\\])/.test(text)) return null;
  const url = URL.parse(text, ORIGIN);
  if (url === null || url.origin !== ORIGIN) return null;
  const path = url.pathname + url.search + url.hash;
  // Removing dot segments can bring two slashes to the front: `/.//host`.
  return path.startsWith("//") ? null : path;
}
