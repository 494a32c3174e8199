// Encodes ASN.1 values in DER (X.690), as far as certificates need it; knows no certificate.

/** SEQUENCE. */
export const sequence = (...parts: readonly Uint8Array[]): Buffer => tagged(0x30, ...parts);

export const set = (...parts: readonly Uint8Array[]): Buffer => tagged(0x31, ...parts);

/** `bytes`: big-endian two's complement. */
export const integer = (bytes: Uint8Array): Buffer => tagged(0x02, bytes);

export const booleanTrue = (): Buffer => tagged(0x01, Uint8Array.of(0xff));

/** BIT STRING. `unused`: padding bits at the end of the last byte. */
export const bits = (bytes: Uint8Array, unused = 0): Buffer =>
  tagged(0x03, Uint8Array.of(unused), bytes);

export const octets = (bytes: Uint8Array): Buffer => tagged(0x04, bytes);

export const text = (value: string): Buffer => tagged(0x0c, Buffer.from(value));

/** `dotted`: as in `1.2.840.10045.4.3.2`. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tagged(0x06, Uint8Array.from([first * 40 + second, ...rest].flatMap(base128)));
}

/** A time in whole seconds, from `time` in milliseconds since the Unix epoch. */
export function timestamp(time: number): Buffer {
  const digits = new Date(time).toISOString().replace(/\.\d+|\D/g, "");
  // RFC 5280 section 4.1.2.5: two digits for the year until 2049, four from 2050 on.
  return digits < "2050"
    ? tagged(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : tagged(0x18, Buffer.from(`${digits}Z`));
}

/** A context-specific, constructed tag (`[n]`, explicit). */
export const contextTag = (number: number, ...parts: readonly Uint8Array[]): Buffer =>
  tagged(0xa0 + number, ...parts);

/** A context-specific, primitive tag (`[n]`, implicit). */
export const implicitTag = (number: number, bytes: Uint8Array): Buffer =>
  tagged(0x80 + number, bytes);

function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Uint8Array.of(tag, length), content]);
  const size = bytesOf(length, 256);
  return Buffer.concat([Uint8Array.of(tag, 0x80 + size.length, ...size), content]);
}

/** All but the last byte have the first bit set. */
const base128 = (value: number): number[] =>
  bytesOf(value, 128).map((digit, index, all) => (index < all.length - 1 ? digit + 128 : digit));

function bytesOf(value: number, base: number): number[] {
  const digits = [value % base];
  for (let rest = Math.floor(value / base); rest > 0; rest = Math.floor(rest / base))
    digits.unshift(rest % base);
  return digits;
}
