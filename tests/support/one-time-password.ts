// One-time passwords as an authenticator app makes them, RFC 4226: not by the library of the gateway, which they check.
import { createHmac } from "node:crypto";
import { stepAt } from "../../src/crypto/one-time-password.ts";

export { stepAt };

/** The one-time password of a counter. */
export function hotp(key: Uint8Array, counter: number, digits = 6): string {
  const message = Buffer.alloc(8);
  message.writeBigUInt64BE(BigInt(counter));
  const mac = createHmac("sha1", key).update(message).digest();
  // RFC 4226 section 5.3: the low four bits of the last byte say which four bytes are taken.
  const offset = mac.readUInt8(mac.length - 1) & 0x0f;
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff;
  return String(number % 10 ** digits).padStart(digits, "0");
}
