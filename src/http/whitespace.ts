// Optional whitespace in fields (RFC 9110 section 5.6.3).

export const isBlank = (code: number): boolean => code === 32 || code === 9;

/** Without optional whitespace (RFC 9112 section 5). */
export function valueBetween(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}
