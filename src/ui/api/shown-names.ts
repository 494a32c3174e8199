// Host names as the UI shows them: A-labels in Unicode, unless their letters could pass for those of another name.

/** The fields of the API that hold host names, or URLs with one. */
const FIELDS: ReadonlySet<string> = new Set([
  ...["hosts", "domains", "host", "sni", "server_name", "host_header", "upstream", "zones"],
  ...["host_suffixes", "certificate_suffixes", "reserved_hosts", "public_url"],
]);

/** One script for each label, or those that are written together. Signs and symbols are shown as A-labels. */
const ONE_SCRIPT =
  /^(?:[\p{sc=Latin}\p{M}\d-]+|[\p{sc=Greek}\p{M}\d-]+|[\p{sc=Cyrillic}\p{M}\d-]+|[\p{sc=Arabic}\p{M}\d-]+|[\p{sc=Hebrew}\p{M}\d-]+|[\p{sc=Devanagari}\p{M}\d-]+|[\p{sc=Thai}\p{M}\d-]+|[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}ー々a-z\d-]+|[\p{sc=Han}\p{sc=Hangul}a-z\d-]+)$/u;
/** Cyrillic and Greek labels whose letters all look like Latin ones. */
const LIKE_LATIN = /^[асԁеһіјӏорԛѕԝхуъьгпαοικνρτυχω\d-]+$/u;

/** The response with its host names in Unicode; the gateway stores what the UI sends back in its own form. */
export function withShownNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withShownNames);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      FIELDS.has(key) ? shown(member) : withShownNames(member),
    ]),
  );
}

const shown = (value: unknown): unknown =>
  typeof value === "string"
    ? shownName(value)
    : Array.isArray(value)
      ? value.map(shown)
      : withShownNames(value);

export const shownName = (name: string): string =>
  name.replaceAll(/xn--[a-z0-9-]+/g, (label) => {
    const text = decoded(label.slice(4));
    if (text === null || !ONE_SCRIPT.test(text) || LIKE_LATIN.test(text)) return label;
    return URL.parse(`http://${text}`)?.hostname === label ? text : label;
  });

/** For names of objects, which are ASCII: `xn--mller-kva.example`. */
export const asciiName = (domain: string): string =>
  /^[\0-\x7f]*$/.test(domain) ? domain : (URL.parse(`http://${domain}`)?.hostname ?? "");

/** Punycode (RFC 3492); null: it is none. */
function decoded(label: string): string | null {
  const end = label.lastIndexOf("-");
  const points = Array.from(end < 0 ? "" : label.slice(0, end), (letter) => letter.charCodeAt(0));
  let code = 128;
  let index = 0;
  let bias = 72;
  for (let at = end + 1; at < label.length;) {
    const before = index;
    for (let weight = 1, k = 36; ; k += 36) {
      const digit = Number.parseInt(label[at++] ?? "", 36);
      // Letters are 0 to 25, digits 26 to 35.
      const value = digit < 10 ? digit + 26 : digit - 10;
      const threshold = Math.min(26, Math.max(1, k - bias));
      index += value * weight;
      if (!(index < 0x7fffffff)) return null;
      if (value < threshold) break;
      weight *= 36 - threshold;
    }
    bias = adapted(index - before, points.length + 1, before === 0);
    code += Math.floor(index / (points.length + 1));
    index %= points.length + 1;
    if (code > 0x10ffff) return null;
    points.splice(index++, 0, code);
  }
  return String.fromCodePoint(...points);
}

function adapted(delta: number, count: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? 700 : 2));
  rest += Math.floor(rest / count);
  let k = 0;
  for (; rest > 455; k += 36) rest = Math.floor(rest / 35);
  return k + Math.floor((36 * rest) / (rest + 38));
}
