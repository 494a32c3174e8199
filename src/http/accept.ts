// Content negotiation with an Accept header; knows nothing of the response.

interface Range {
  readonly type: string;
  readonly quality: number;
}

/**
 * The offer that the client prefers, null when it accepts none (RFC 9110 12.5.1). Offers are lower-case `type/subtype`
 * in the server's order of preference, which breaks ties; without an Accept header the first one wins.
 */
export function negotiate(accept: string | null, offers: readonly string[]): string | null {
  if (accept === null || accept.trim() === "") return offers[0] ?? null;
  const ranges = parseRanges(accept);
  let best: string | null = null;
  let bestQuality = 0;
  for (const offer of offers) {
    const quality = qualityOf(offer, ranges);
    if (quality > bestQuality) {
      best = offer;
      bestQuality = quality;
    }
  }
  return best;
}

function parseRanges(accept: string): Range[] {
  return accept
    .toLowerCase()
    .split(",")
    .map((item) => {
      const [type = "", ...parameters] = item.split(";");
      const weight = parameters.map((p) => p.trim()).find((p) => p.startsWith("q="));
      return {
        type: type.trim(),
        quality: weight === undefined ? 1 : parseQuality(weight.slice(2)),
      };
    });
}

/** RFC 9110 12.4.2; a malformed weight counts as 0, so that it never wins over a well-formed one. */
function parseQuality(text: string): number {
  return /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(text) ? Number(text) : 0;
}

/** The weight of the most specific range that covers the offer. */
function qualityOf(offer: string, ranges: readonly Range[]): number {
  const family = `${offer.slice(0, offer.indexOf("/"))}/*`;
  for (const type of [offer, family, "*/*"]) {
    const range = ranges.find((candidate) => candidate.type === type);
    if (range !== undefined) return range.quality;
  }
  return 0;
}
