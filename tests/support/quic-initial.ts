// A well-formed QUIC Initial packet (RFC 9000, RFC 9001) made by hand, so that tests can send wrong ones; receives nothing.
import { createCipheriv, createHmac, randomBytes } from "node:crypto";

const SALT = Buffer.from("38762cf7f55934b34d179ae6a4c80cadccbb7f0a", "hex");

const hmac = (key: Buffer, data: Buffer) => createHmac("sha256", key).update(data).digest();

/** HKDF-Expand-Label (RFC 8446 section 7.1), at most 32 bytes. */
function expand(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([
    Buffer.from([length >> 8, length & 255, name.length]),
    name,
    Buffer.from([0, 1]),
  ]);
  return hmac(secret, info).subarray(0, length);
}

/** A length in two bytes (RFC 9000 section 16). */
const short = (value: number) => Buffer.from([0x40 | (value >> 8), value & 255]);

export interface InitialOptions {
  readonly version?: number;
  readonly destination?: Buffer;
  readonly source?: Buffer;
  readonly token?: Buffer;
  /** The encrypted frames. Default: a CRYPTO frame with `crypto`. */
  readonly frames?: Buffer;
  /** The TLS message; default: random bytes that begin like a ClientHello. */
  readonly crypto?: Buffer;
  /** Bytes of the datagram; default 1200. */
  readonly size?: number;
}

/** One datagram with valid packet protection and any content: the server decrypts it and must handle the content. */
export function quicInitial(options: InitialOptions = {}): Buffer {
  const { version = 1, token = Buffer.alloc(0), size = 1200 } = options;
  const destination = options.destination ?? randomBytes(8);
  const source = options.source ?? randomBytes(8);
  const crypto = options.crypto ?? Buffer.concat([Buffer.from([1, 0, 1, 0]), randomBytes(256)]);
  const frames =
    options.frames ?? Buffer.concat([Buffer.from([6, 0]), short(crypto.length), crypto]);
  const head = Buffer.concat([
    Buffer.from([0xc0]),
    Buffer.from([version >>> 24, (version >> 16) & 255, (version >> 8) & 255, version & 255]),
    Buffer.from([destination.length]),
    destination,
    Buffer.from([source.length]),
    source,
    short(token.length),
    token,
  ]);
  const room = Math.max(size - head.length - 3 - 16, frames.length);
  const body = Buffer.concat([frames, Buffer.alloc(room - frames.length)]);
  const header = Buffer.concat([head, short(1 + body.length + 16), Buffer.from([0])]);
  const client = expand(hmac(SALT, destination), "client in", 32);
  const cipher = createCipheriv(
    "aes-128-gcm",
    expand(client, "quic key", 16),
    expand(client, "quic iv", 12),
  );
  cipher.setAAD(header);
  const sealed = Buffer.concat([cipher.update(body), cipher.final(), cipher.getAuthTag()]);
  const mask = createCipheriv("aes-128-ecb", expand(client, "quic hp", 16), null).update(
    sealed.subarray(3, 19),
  );
  header[0] = (header[0] ?? 0) ^ ((mask[0] ?? 0) & 0x0f);
  const last = header.length - 1;
  header[last] = (header[last] ?? 0) ^ (mask[1] ?? 0);
  return Buffer.concat([header, sealed]);
}
