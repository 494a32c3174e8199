// Signatures of DNS messages with a shared key (RFC 8945); opens no socket.
import { createHmac, timingSafeEqual } from "node:crypto";
import {
  classes,
  nameBytes,
  type ReadMessage,
  readName,
  recordBytes,
  recordTypes,
  u32,
} from "./dns-message.ts";
import { DnsError } from "./failure.ts";

export const tsigAlgorithms = ["hmac-sha256", "hmac-sha384", "hmac-sha512"] as const;

export interface TsigKey {
  readonly name: string;
  readonly algorithm: (typeof tsigAlgorithms)[number];
  readonly secret: Buffer;
}

export interface Signed {
  readonly bytes: Buffer;
  /** MAC of the request, part of the signed data of the response. */
  readonly mac: Buffer;
}

/** Allowed clock skew in seconds (RFC 8945 section 10). */
const FUDGE_SECONDS = 300;
const ADDITIONAL_COUNT_AT = 10;

const u16 = (value: number) => Buffer.of((value >> 8) & 0xff, value & 0xff);
const u48 = (value: number) =>
  Buffer.concat([u16(Math.floor(value / 2 ** 32)), u32(value % 2 ** 32)]);

/** Appends the signature; `now`: milliseconds since the Unix epoch. */
export function signMessage(message: Buffer, key: TsigKey, now: number): Signed {
  const time = Math.floor(now / 1000);
  const mac = macOf(
    [message, variables(key, { time, fudge: FUDGE_SECONDS, error: 0, other: Buffer.alloc(0) })],
    key,
  );
  const data = Buffer.concat([
    nameBytes(key.algorithm),
    u48(time),
    u16(FUDGE_SECONDS),
    u16(mac.length),
    mac,
    message.subarray(0, 2),
    u16(0),
    u16(0),
  ]);
  const record = { name: key.name, type: recordTypes.TSIG, class: classes.ANY, ttl: 0, data };
  const bytes = Buffer.concat([message, recordBytes(record)]);
  bytes.writeUInt16BE(bytes.readUInt16BE(ADDITIONAL_COUNT_AT) + 1, ADDITIONAL_COUNT_AT);
  return { bytes, mac };
}

/** Throws a DnsError unless the response is signed with the key of the request, also for a TSIG error. */
export function requireSignature(
  reply: { readonly bytes: Buffer; readonly message: ReadMessage },
  request: { readonly key: TsigKey; readonly mac: Buffer },
): void {
  const record = reply.message.additional.at(-1);
  if (record?.type !== recordTypes.TSIG)
    throw new DnsError("the name server did not sign its response");
  const found = readData(reply.bytes, record.dataStart);
  if (found.error !== 0) throw new DnsError(errorWords(found.error));
  const bare = Buffer.from(reply.bytes.subarray(0, record.start));
  bare.writeUInt16BE(bare.readUInt16BE(ADDITIONAL_COUNT_AT) - 1, ADDITIONAL_COUNT_AT);
  found.originalId.copy(bare, 0);
  const { key, mac } = request;
  const expected = macOf([u16(mac.length), mac, bare, variables(key, found)], key);
  if (expected.length !== found.mac.length || !timingSafeEqual(expected, found.mac))
    throw new DnsError("the signature of the name server's response is invalid");
}

interface Variables {
  readonly time: number;
  readonly fudge: number;
  readonly error: number;
  readonly other: Buffer;
}

/** RFC 8945 section 4.3.3. */
const variables = (key: TsigKey, { time, fudge, error, other }: Variables) =>
  Buffer.concat([
    nameBytes(key.name.toLowerCase()),
    u16(classes.ANY),
    u32(0),
    nameBytes(key.algorithm),
    u48(time),
    u16(fudge),
    u16(error),
    u16(other.length),
    other,
  ]);

function readData(
  bytes: Buffer,
  start: number,
): Variables & { readonly mac: Buffer; readonly originalId: Buffer } {
  try {
    const { end } = readName(bytes, start);
    const macEnd = end + 10 + bytes.readUInt16BE(end + 8);
    return {
      time: bytes.readUIntBE(end, 6),
      fudge: bytes.readUInt16BE(end + 6),
      mac: bytes.subarray(end + 10, macEnd),
      originalId: bytes.subarray(macEnd, macEnd + 2),
      error: bytes.readUInt16BE(macEnd + 2),
      other: bytes.subarray(macEnd + 6, macEnd + 6 + bytes.readUInt16BE(macEnd + 4)),
    };
  } catch {
    throw new DnsError("the signature of the name server's response is malformed");
  }
}

const macOf = (parts: readonly Buffer[], { algorithm, secret }: TsigKey): Buffer =>
  createHmac(algorithm.slice("hmac-".length), secret).update(Buffer.concat(parts)).digest();

/** RFC 8945 section 3. */
function errorWords(error: number): string {
  if (error === 16)
    return "the name server rejects the signature: check tsig_secret and tsig_algorithm";
  if (error === 17)
    return "the name server does not know the key: check tsig_key_name and tsig_algorithm";
  if (error === 18) return "the clocks of the gateway and the name server differ too much";
  return `the name server rejects the signature (error ${error})`;
}
