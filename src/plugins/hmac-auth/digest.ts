// Checks a body against its Content-Digest (RFC 9530); knows no signature.
import { createHash, timingSafeEqual } from "node:crypto";
import { parseDictionary } from "structured-headers";

/** RFC 9530 section 5: the secure ones. */
const algorithms: Readonly<Record<string, string>> = { "sha-256": "sha256", "sha-512": "sha512" };

/** Whether the header has a supported digest, and all supported ones match the body. */
export function fitsDigest(field: string, body: Uint8Array): boolean {
  try {
    let checked = 0;
    for (const [name, [value]] of parseDictionary(field)) {
      const algorithm = Object.hasOwn(algorithms, name) ? algorithms[name] : undefined;
      if (algorithm === undefined) continue;
      if (!(value instanceof ArrayBuffer)) return false;
      const digest = createHash(algorithm).update(body).digest();
      if (value.byteLength !== digest.byteLength) return false;
      if (!timingSafeEqual(new Uint8Array(value), digest)) return false;
      checked++;
    }
    return checked > 0;
  } catch {
    return false;
  }
}
