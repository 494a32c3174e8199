// Reads elements and texts of flat XML responses; knows no document type.

/** The content of each element with the name, in order. Such elements must not be nested. */
export function elementsOf(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, "g");
  return [...xml.matchAll(pattern)].map(([, inner = ""]) => inner);
}

/** The text of the first element with the name; empty when there is none. */
export const textOf = (xml: string, name: string): string =>
  unescapeXml(elementsOf(xml, name)[0] ?? "").trim();

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
};

export const escapeXml = (text: string): string =>
  text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

const unescapeXml = (text: string): string =>
  text.replace(/&(#\d{1,7}|#x[0-9a-fA-F]{1,6}|\w+);/g, (whole, entity: string) => {
    if (!entity.startsWith("#")) return ENTITIES[entity] ?? whole;
    const isHex = entity.startsWith("#x");
    const code = Number.parseInt(entity.slice(isHex ? 2 : 1), isHex ? 16 : 10);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
