// The static table of RFC 7541 appendix A; knows no dynamic table.

export interface TableEntry {
  readonly name: string;
  readonly value: string;
  /** Whether HTTP/2 allows the value. */
  readonly isValid: boolean;
}

const ENTRIES: readonly (readonly [name: string, value?: string])[] = [
  [":authority"],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset"],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language"],
  ["accept-ranges"],
  ["accept"],
  ["access-control-allow-origin"],
  ["age"],
  ["allow"],
  ["authorization"],
  ["cache-control"],
  ["content-disposition"],
  ["content-encoding"],
  ["content-language"],
  ["content-length"],
  ["content-location"],
  ["content-range"],
  ["content-type"],
  ["cookie"],
  ["date"],
  ["etag"],
  ["expect"],
  ["expires"],
  ["from"],
  ["host"],
  ["if-match"],
  ["if-modified-since"],
  ["if-none-match"],
  ["if-range"],
  ["if-unmodified-since"],
  ["last-modified"],
  ["link"],
  ["location"],
  ["max-forwards"],
  ["proxy-authenticate"],
  ["proxy-authorization"],
  ["range"],
  ["referer"],
  ["refresh"],
  ["retry-after"],
  ["server"],
  ["set-cookie"],
  ["strict-transport-security"],
  ["transfer-encoding"],
  ["user-agent"],
  ["vary"],
  ["via"],
  ["www-authenticate"],
];

/** The first one has the index 1. */
export const STATIC_TABLE: readonly TableEntry[] = ENTRIES.map(([name, value = ""]) => ({
  name,
  value,
  isValid: true,
}));

/** The lowest index of each name. */
export const STATIC_NAMES: ReadonlyMap<string, number> = new Map(
  STATIC_TABLE.map(({ name }, at) => [name, at + 1] as const).toReversed(),
);
