// Reads a parameter of a query string; knows nothing of paths or forms.

/**
 * The decoded value of the first parameter with that name, null when there is none; a name without `=` has the value "".
 * `+` and %20 are a space, as in application/x-www-form-urlencoded; a malformed escape stays as it is.
 */
export function queryValue(query: string, name: string): string | null {
  let start = 0;
  while (start < query.length) {
    let end = query.indexOf("&", start);
    if (end < 0) end = query.length;
    let equals = query.indexOf("=", start);
    if (equals < 0 || equals > end) equals = end;
    if (isNamed(query, { start, end: equals }, name)) {
      return equals === end ? "" : decodeParameter(query.slice(equals + 1, end));
    }
    start = end + 1;
  }
  return null;
}

function isNamed(query: string, key: { start: number; end: number }, name: string): boolean {
  if (key.end - key.start === name.length && query.startsWith(name, key.start)) return true;
  // An escape makes a name longer, so only a longer one can still be equal; `+` keeps its length.
  if (key.end - key.start < name.length) return false;
  const text = query.slice(key.start, key.end);
  return (text.includes("%") || text.includes("+")) && decodeParameter(text) === name;
}

function decodeParameter(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}
