// Where a browser may be sent after a sign-in: pages of this gateway only; knows nothing of the sign-in.

const ORIGIN = "http://gateway.invalid";
const MAX_LENGTH = 2048;

/** The path as it is safe in a Location header, or null for everything that could lead to another host. */
export function toLocalPath(text: string): string | null {
  if (text.length > MAX_LENGTH || /[\u0000-\u001f\u007f]/.test(text)) return null;
  // Browsers read a backslash as a slash, and two slashes begin a host.
  if (!/^\/(?![/\\])/.test(text)) return null;
  const url = URL.parse(text, ORIGIN);
  if (url === null || url.origin !== ORIGIN) return null;
  const path = url.pathname + url.search + url.hash;
  // Dot segments are gone now, which can bring two slashes to the front: `/.//host`.
  return path.startsWith("//") ? null : path;
}
