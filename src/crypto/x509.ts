// Makes and reads X.509 certificates; knows nothing of files, listeners or certificate authorities.
import { generateKeyPair, randomBytes, sign, X509Certificate } from "node:crypto";
import { promisify } from "node:util";
import ipaddr from "ipaddr.js";
import * as der from "./der.ts";

/** A certificate chain and its key, as PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface SelfSignedOptions {
  /** Host names, the first one is the subject. */
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly validDays: number;
  /** SHA-256 of what a certificate authority wants to see in it (RFC 8737 section 3); default: nothing. */
  readonly proof?: Uint8Array;
}

const DAY_MS = 86_400_000;

/** ECDSA with SHA-256, RFC 5758 section 3.2. */
const ALGORITHM = der.sequence(der.objectId("1.2.840.10045.4.3.2"));
/** RFC 5280 section 4.1.2.1: the third version, the only one with extensions, is written as 2. */
const VERSION = der.contextTag(0, der.integer(Uint8Array.of(2)));
const COMMON_NAME = der.objectId("2.5.4.3");

const DNS_NAME = 2;
const IP_ADDRESS = 7;

/**
 * A new ECDSA P-256 key with a certificate that it signs itself. Written here, field by field as in RFC 5280, because every
 * first start needs it: the packages that can do it took a fifth of the time and 7 MB for as long as the gateway ran.
 */
export async function createSelfSigned(options: SelfSignedOptions): Promise<KeyPair> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)("ec", {
    namedCurve: "P-256",
  });
  const name = nameOf(options.names[0] ?? "localhost");
  const validity = der.sequence(
    // A client whose clock is a little behind must not find it not yet valid.
    der.timestamp(options.now - DAY_MS),
    der.timestamp(options.now + options.validDays * DAY_MS),
  );
  const toSign = der.sequence(
    VERSION,
    der.integer(serialNumber()),
    ALGORITHM,
    name,
    validity,
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der.contextTag(3, extensionsOf(options)),
  );
  const signature = sign("sha256", toSign, privateKey);
  return {
    cert: toPem("CERTIFICATE", der.sequence(toSign, ALGORITHM, der.bits(signature))),
    key: toPem("PRIVATE KEY", privateKey.export({ type: "pkcs8", format: "der" })),
  };
}

const nameOf = (commonName: string) =>
  der.sequence(der.set(der.sequence(COMMON_NAME, der.text(commonName))));

/** Positive, and without a zero at the beginning. */
function serialNumber(): Uint8Array {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0);
  return bytes;
}

function extensionsOf({ names, addresses, proof }: SelfSignedOptions): Buffer {
  const alternatives = [
    ...names.map((name) => der.implicitTag(DNS_NAME, Buffer.from(name))),
    ...addresses.map((address) =>
      der.implicitTag(IP_ADDRESS, Uint8Array.from(ipaddr.parse(address).toByteArray())),
    ),
  ];
  const extension = (id: string, value: Buffer, isCritical: boolean) =>
    der.sequence(der.objectId(id), ...(isCritical ? [der.booleanTrue()] : []), der.octets(value));
  return der.sequence(
    // Basic constraints: no authority.
    extension("2.5.29.19", der.sequence(), true),
    // Key usage: signatures, the first of eight bits.
    extension("2.5.29.15", der.bits(Uint8Array.of(0x80), 7), true),
    // Extended key usage: TLS servers.
    extension("2.5.29.37", der.sequence(der.objectId("1.3.6.1.5.5.7.3.1")), false),
    // Subject alternative names, the only ones that clients look at.
    extension("2.5.29.17", der.sequence(...alternatives), false),
    ...(proof === undefined ? [] : [extension("1.3.6.1.5.5.7.1.31", der.octets(proof), true)]),
  );
}

/** When the first certificate of a PEM text ends, in milliseconds since the Unix epoch; null when it is none. */
export function expiryOf(pem: string): number | null {
  try {
    return Date.parse(new X509Certificate(pem).validTo);
  } catch {
    return null;
  }
}

function toPem(label: string, bytes: Uint8Array): string {
  const lines = Buffer.from(bytes)
    .toString("base64")
    .match(/.{1,64}/g);
  return `-----BEGIN ${label}-----\n${(lines ?? []).join("\n")}\n-----END ${label}-----\n`;
}
