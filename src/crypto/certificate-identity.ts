// Reads from a certificate's bytes which key signed it and its serial number, as they stand there; checks nothing.
import { X509Certificate } from "node:crypto";

const [SEQUENCE, INTEGER, OCTETS, VERSION, KEY_ID] = [0x30, 0x02, 0x04, 0xa0, 0x80] as const;
/** The authority key identifier, 2.5.29.35 (RFC 5280 section 4.2.1.1). */
const AUTHORITY_KEY_ID = Buffer.from([0x06, 0x03, 0x55, 0x1d, 0x23]);

export interface CertificateIdentity {
  readonly authorityKeyId: Uint8Array;
  /** The bytes of the number, a leading zero included. */
  readonly serialNumber: Uint8Array;
}

/** Of the first certificate of a PEM text; null when it does not say whose key signed it. */
export function identityOf(pem: string): CertificateIdentity | null {
  const bytes = new X509Certificate(pem).raw;
  const serialNumber = serialNumberOf(bytes);
  const at = bytes.indexOf(AUTHORITY_KEY_ID);
  if (serialNumber === null || at < 0) return null;
  const value = read(bytes, at + AUTHORITY_KEY_ID.length);
  const list = value?.tag === OCTETS ? read(value.content, 0) : null;
  const keyId = list?.tag === SEQUENCE ? read(list.content, 0) : null;
  return keyId?.tag === KEY_ID ? { authorityKeyId: keyId.content, serialNumber } : null;
}

function serialNumberOf(bytes: Uint8Array): Uint8Array | null {
  const signed = read(read(bytes, 0)?.content ?? bytes, 0);
  if (signed?.tag !== SEQUENCE) return null;
  const first = read(signed.content, 0);
  const serial = first?.tag === VERSION ? read(signed.content, first.end) : first;
  return serial?.tag === INTEGER ? serial.content : null;
}

interface Value {
  readonly tag: number;
  readonly content: Uint8Array;
  /** Where the next one begins. */
  readonly end: number;
}

/** One value in the distinguished encoding (X.690); null when it is cut off. */
function read(bytes: Uint8Array, at: number): Value | null {
  const [tag, short] = [bytes[at], bytes[at + 1]];
  if (tag === undefined || short === undefined) return null;
  let begin = at + 2;
  let length = short;
  if (short >= 0x80) {
    length = 0;
    for (const byte of bytes.subarray(begin, begin + short - 0x80)) length = length * 256 + byte;
    begin += short - 0x80;
  }
  const end = begin + length;
  return end > bytes.length ? null : { tag, content: bytes.subarray(begin, end), end };
}
