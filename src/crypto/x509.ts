// Makes and reads X.509 certificates; knows nothing of files, listeners or certificate authorities.
import {
  createHash,
  createPrivateKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { promisify } from "node:util";
import ipaddr from "ipaddr.js";
import * as der from "./der.ts";

/** A certificate chain and its key, as PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** What a certificate holds. */
interface CertificateContent {
  /** Host names. */
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly validDays: number;
}

export interface SelfSignedOptions extends CertificateContent {
  /** Host names, the first one is the subject. */
  readonly names: readonly string[];
  /** SHA-256 of what a certificate authority wants to see in it (RFC 8737 section 3); default: nothing. */
  readonly proof?: Uint8Array;
}

/** Names that a CA can sign (RFC 5280 section 4.2.1.10). */
export interface NameConstraints {
  /** Names, each with all names below it. */
  readonly names: readonly string[];
  /** In CIDR notation. */
  readonly networks: readonly string[];
}

export interface RootOptions {
  readonly commonName: string;
  /** Null: it can sign any name. */
  readonly constraints: NameConstraints | null;
  readonly now: number;
  readonly validDays: number;
}

const DAY_MS = 86_400_000;

/** ECDSA with SHA-256, RFC 5758 section 3.2. */
const ALGORITHM = der.sequence(der.objectId("1.2.840.10045.4.3.2"));
/** RFC 5280 section 4.1.2.1: the third version, the only one with extensions, is written as 2. */
const VERSION = der.contextTag(0, der.integer(Uint8Array.of(2)));
const COMMON_NAME = der.objectId("2.5.4.3");
/** RFC 5280 appendix A.1, ub-common-name. */
const LONGEST_COMMON_NAME = 64;

const DNS_NAME = 2;
const IP_ADDRESS = 7;

const NO_CA = extension("2.5.29.19", der.sequence(), true);
/** RFC 5280 section 4.2.1.9: no further CA below it. */
const CA = extension(
  "2.5.29.19",
  der.sequence(der.booleanTrue(), der.integer(Uint8Array.of(0))),
  true,
);
/** The first of eight bits. */
const SIGNATURES = extension("2.5.29.15", der.bits(Uint8Array.of(0x80), 7), true);
/** The bits 5 and 6: certificates and revocation lists. */
const CERTIFICATE_SIGNATURES = extension("2.5.29.15", der.bits(Uint8Array.of(0x06), 1), true);
const TLS_SERVERS = extension("2.5.29.37", der.sequence(der.objectId("1.3.6.1.5.5.7.3.1")), false);

/**
 * A new ECDSA P-256 key with a certificate that it signs itself. Written here, field by field as in RFC 5280, because every
 * first start needs it: the packages that can do it took a fifth of the time and 7 MB for as long as the gateway ran.
 */
export async function createSelfSigned(options: SelfSignedOptions): Promise<KeyPair> {
  const keys = await newKeys();
  const { proof } = options;
  const name = nameOf(options.names[0] ?? "localhost");
  const extensions = [
    NO_CA,
    SIGNATURES,
    TLS_SERVERS,
    alternativeNames(options, false),
    ...(proof === undefined ? [] : [extension("1.3.6.1.5.5.7.1.31", der.octets(proof), true)]),
  ];
  const subject = { name, publicKey: keys.publicKey, validity: validityOf(options), extensions };
  return pairOf(signed(subject, { name, key: keys.privateKey }), keys);
}

/** A new ECDSA P-256 key of a CA, for TLS servers only, with the certificate that clients trust. */
export async function createRoot(options: RootOptions): Promise<KeyPair> {
  const keys = await newKeys();
  const { commonName, constraints } = options;
  const name = nameOf(commonName);
  const extensions = [
    CA,
    CERTIFICATE_SIGNATURES,
    TLS_SERVERS,
    extension("2.5.29.14", der.octets(keyIdOf(keys.publicKey)), false),
    ...(constraints === null ? [] : [nameConstraints(constraints)]),
  ];
  const subject = { name, publicKey: keys.publicKey, validity: validityOf(options), extensions };
  return pairOf(signed(subject, { name, key: keys.privateKey }), keys);
}

/** A new ECDSA P-256 key with a certificate that `root` signs, and that does not outlive it. */
export async function createSigned(options: CertificateContent, root: KeyPair): Promise<KeyPair> {
  const keys = await newKeys();
  const issuer = new X509Certificate(root.cert);
  const issuerKey = createPrivateKey(root.key);
  const [first = ""] = options.names;
  const hasName = first !== "" && first.length <= LONGEST_COMMON_NAME;
  const extensions = [
    NO_CA,
    SIGNATURES,
    TLS_SERVERS,
    extension("2.5.29.14", der.octets(keyIdOf(keys.publicKey)), false),
    // Authority key identifier.
    extension("2.5.29.35", der.sequence(der.implicitTag(0, keyIdOf(issuer.publicKey))), false),
    // RFC 5280 section 4.1.2.6: critical where the subject is empty.
    alternativeNames(options, !hasName),
  ];
  const subject = {
    name: hasName ? nameOf(first) : der.sequence(),
    publicKey: keys.publicKey,
    validity: validityOf(options, Date.parse(issuer.validTo)),
    extensions,
  };
  return pairOf(signed(subject, { name: subjectOf(issuer), key: issuerKey }), keys);
}

const newKeys = () => promisify(generateKeyPair)("ec", { namedCurve: "P-256" });

const pairOf = (cert: Buffer, { privateKey }: { readonly privateKey: KeyObject }): KeyPair => ({
  cert: toPem("CERTIFICATE", cert),
  key: toPem("PRIVATE KEY", privateKey.export({ type: "pkcs8", format: "der" })),
});

/** The certificate of a subject, signed by an issuer. */
function signed(
  subject: {
    readonly name: Uint8Array;
    readonly publicKey: KeyObject;
    readonly validity: Uint8Array;
    readonly extensions: readonly Uint8Array[];
  },
  issuer: { readonly name: Uint8Array; readonly key: KeyObject },
): Buffer {
  const toSign = der.sequence(
    VERSION,
    der.integer(serialNumber()),
    ALGORITHM,
    issuer.name,
    subject.validity,
    subject.name,
    subject.publicKey.export({ type: "spki", format: "der" }),
    der.contextTag(3, der.sequence(...subject.extensions)),
  );
  return der.sequence(toSign, ALGORITHM, der.bits(sign("sha256", toSign, issuer.key)));
}

/** `latest`: of the issuer, in milliseconds since the Unix epoch. */
function validityOf(
  { now, validDays }: Pick<CertificateContent, "now" | "validDays">,
  latest = Number.POSITIVE_INFINITY,
): Buffer {
  return der.sequence(
    // A client whose clock is a little behind must not find it not yet valid.
    der.timestamp(now - DAY_MS),
    der.timestamp(Math.min(now + validDays * DAY_MS, latest)),
  );
}

const nameOf = (commonName: string) =>
  der.sequence(der.set(der.sequence(COMMON_NAME, der.text(commonName))));

/** Of a root that was made here, whose only attribute is the common name. */
const subjectOf = ({ subject }: X509Certificate) => nameOf(subject.replace(/^CN=/, ""));

/** RFC 7093 section 2, method 1: the start of the SHA-256 of the key. */
function keyIdOf(publicKey: KeyObject): Uint8Array {
  const bytes = publicKey.export({ type: "spki", format: "der" });
  return createHash("sha256").update(bytes).digest().subarray(0, 20);
}

/** Positive, and without a zero at the beginning. */
function serialNumber(): Uint8Array {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(0) & 0x3f) | 0x40, 0);
  return bytes;
}

function extension(id: string, value: Buffer, isCritical: boolean): Buffer {
  return der.sequence(
    der.objectId(id),
    ...(isCritical ? [der.booleanTrue()] : []),
    der.octets(value),
  );
}

/** Subject alternative names, the only ones that clients look at. */
function alternativeNames({ names, addresses }: CertificateContent, isCritical: boolean): Buffer {
  const alternatives = [
    ...names.map((name) => der.implicitTag(DNS_NAME, Buffer.from(name))),
    ...addresses.map((address) =>
      der.implicitTag(IP_ADDRESS, Uint8Array.from(ipaddr.parse(address).toByteArray())),
    ),
  ];
  return extension("2.5.29.17", der.sequence(...alternatives), isCritical);
}

/** RFC 5280 section 4.2.1.10: a form of name without a permitted value has to be excluded, or all of its values are permitted. */
function nameConstraints({ names, networks }: NameConstraints): Buffer {
  const permitted = [
    ...names.map((name) => der.implicitTag(DNS_NAME, Buffer.from(name))),
    ...networks.map((network) => der.implicitTag(IP_ADDRESS, rangeOf(network))),
  ];
  const excluded = [
    ...(names.length === 0 ? [der.implicitTag(DNS_NAME, Buffer.alloc(0))] : []),
    ...(networks.length === 0
      ? ["0.0.0.0/0", "::/0"].map((network) => der.implicitTag(IP_ADDRESS, rangeOf(network)))
      : []),
  ];
  const subtrees = (number: number, list: readonly Uint8Array[]) =>
    list.length === 0 ? [] : [der.contextTag(number, ...list.map((base) => der.sequence(base)))];
  return extension(
    "2.5.29.30",
    der.sequence(...subtrees(0, permitted), ...subtrees(1, excluded)),
    true,
  );
}

/** The address and the mask of a network. */
function rangeOf(network: string): Uint8Array {
  const [base, bits] = ipaddr.parseCIDR(network);
  const address = base.toByteArray();
  const mask = address.map((_, index) => {
    const left = Math.min(8, Math.max(0, bits - 8 * index));
    return 256 - 2 ** (8 - left);
  });
  return Uint8Array.from([...address.map((byte, index) => byte & (mask[index] ?? 0)), ...mask]);
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
