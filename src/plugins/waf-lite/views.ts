// Normalizes text before matching: nested encodings, case, white space, comments; knows no rule.

/** Levels of encoding to decode; legitimate clients use two at most. */
const MAX_LAYERS = 3;

const ESCAPES = /(?:%[0-9a-f]{2})+/gi;
const UNICODE_ESCAPE = /%u([0-9a-f]{4})/gi;
// Invalid UTF-8 that lenient decoders read as `.`, `/` and `\`.
const OVERLONG = /%(?:c0%ae|c0%af|c1%9c|c0%2e|c0%5c)/gi;
const overlongs: Readonly<Record<string, string>> = {
  "%c0%ae": ".",
  "%c0%2e": ".",
  "%c0%af": "/",
  "%c1%9c": "\\",
  "%c0%5c": "\\",
};
const JSON_ESCAPE = /\\(?:u([0-9a-f]{4})|(["\\/bfnrt]))/gi;
const NEEDS_SPACES = /[^\S ]| {2}/;
const NOT_ASCII = /[^\0-\x7f]/;

export type Encoding = "text" | "form" | "json";

/**
 * The text as different servers might read it, without duplicates: one view for each level of encoding, and one more without
 * SQL comments. A single one for plain text.
 */
export function viewsOf(text: string, encoding: Encoding): readonly string[] {
  const views: string[] = [];
  let layer = text;
  if (encoding === "form" && layer.includes("+")) layer = layer.replaceAll("+", " ");
  if (encoding === "json") layer = withoutJsonEscapes(layer);
  for (let depth = 0; depth < MAX_LAYERS; depth++) {
    const decoded = layer.includes("%") ? percentDecoded(layer) : layer;
    if (depth > 0 && decoded === layer) break;
    addView(views, simplified(decoded));
    if (!decoded.includes("%")) break;
    layer = decoded;
  }
  return views;
}

function addView(views: string[], view: string): void {
  if (!views.includes(view)) views.push(view);
  if (!view.includes("/*")) return;
  const bare = withoutComments(view);
  if (!views.includes(bare)) views.push(bare);
}

function percentDecoded(text: string): string {
  return text
    .replace(OVERLONG, (sequence) => overlongs[sequence.toLowerCase()] ?? sequence)
    .replace(UNICODE_ESCAPE, (_, digits: string) => character(digits))
    .replace(ESCAPES, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8"));
}

const jsonCharacters: Readonly<Record<string, string>> = { b: " ", f: " ", n: " ", r: " ", t: " " };

const withoutJsonEscapes = (text: string): string =>
  text.replace(JSON_ESCAPE, (_, digits: string | undefined, letter: string | undefined) =>
    digits === undefined
      ? (jsonCharacters[(letter ?? "").toLowerCase()] ?? letter ?? "")
      : character(digits),
  );

const character = (digits: string): string => String.fromCharCode(Number.parseInt(digits, 16));

function simplified(text: string): string {
  let simple = text;
  // Some databases and frameworks convert full-width letters to plain ones.
  if (NOT_ASCII.test(simple)) simple = simple.normalize("NFKC");
  if (simple.includes("\0")) simple = simple.replaceAll("\0", "");
  if (NEEDS_SPACES.test(simple)) simple = simple.replace(/\s+/g, " ");
  return simple.toLowerCase();
}

/** Replaces comments with white space, except executable MySQL comments. A loop, because it is linear. */
function withoutComments(text: string): string {
  let result = "";
  let at = 0;
  for (;;) {
    const start = text.indexOf("/*", at);
    if (start < 0) break;
    result += `${text.slice(at, start)} `;
    const end = text.indexOf("*/", start + 2);
    if (text.charAt(start + 2) === "!")
      result += text.slice(start + 3, end < 0 ? undefined : end).replace(/^\d{1,6}/, "");
    if (end < 0) return result.replace(/ {2,}/g, " ");
    result += " ";
    at = end + 2;
  }
  return (result + text.slice(at)).replace(/ {2,}/g, " ");
}
