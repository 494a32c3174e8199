// Reads base32 (RFC 4648), in which keys of authenticator apps are shown.

export function fromBase32(text: string): Uint8Array {
  const bits = [...text.replace(/=+$/, "")]
    .map((sign) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(sign).toString(2).padStart(5, "0"))
    .join("");
  return new Uint8Array((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
