// Reads uploaded certificates and keys: puts the chain in order, checks the key, finds names; knows no store.
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import ipaddr from "ipaddr.js";

/** A certificate that can be served. */
export interface CertificateChain {
  /** PEM, the leaf first, each one signed by the next. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
  /** DNS names of the leaf, lower case. */
  readonly names: readonly string[];
  /** RFC 3339. */
  readonly notBefore: string;
  readonly notAfter: string;
  readonly issuer: string;
  /** SHA-256, hexadecimal. */
  readonly fingerprint: string;
}

/** What is wrong, and in which of the two texts. */
export class ChainError extends Error {
  readonly field: "certificate" | "private_key";

  constructor(field: ChainError["field"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}

const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
const MAX_CERTIFICATES = 20;
/** The authorities that browsers trust are fewer than this. */
const MAX_AUTHORITIES = 300;

/** Throws a ChainError; its message holds nothing of the key. */
export function readChain(pem: string, keyPem: string): CertificateChain {
  const certificates = parseCertificates(pem);
  const key = parseKey(keyPem);
  const leaf = certificates.find((certificate) => certificate.checkPrivateKey(key));
  if (leaf === undefined) throw new ChainError("private_key", "does not belong to the certificate");
  const names = namesOf(leaf);
  const ordered = order(leaf, certificates);
  return {
    certificate: ordered.map((certificate) => toPem(certificate)).join(""),
    key: key.export({ type: "pkcs8", format: "pem" }).toString(),
    names,
    notBefore: new Date(leaf.validFrom).toISOString(),
    notAfter: new Date(leaf.validTo).toISOString(),
    issuer: leaf.issuer.replaceAll("\n", ", "),
    fingerprint: leaf.fingerprint256.replaceAll(":", "").toLowerCase(),
  };
}

/** What is wrong with a text that should hold certificates and nothing else, worded to follow a field's name; null when nothing is. */
export function certificatesProblem(pem: string): string | null {
  if (pem.replace(BLOCK, "").includes("-----BEGIN")) return "must hold certificates only";
  try {
    parseCertificates(pem, MAX_AUTHORITIES);
    return null;
  } catch (error) {
    if (error instanceof ChainError) return error.message;
    throw error;
  }
}

/** DNS names of the first certificate in a PEM text, lower case. */
export function namesIn(pem: string): readonly string[] {
  const [leaf] = parseCertificates(pem);
  return leaf === undefined ? [] : namesOf(leaf);
}

/** IP addresses of the first certificate in a PEM text, as ipaddr.js writes them. */
export function addressesIn(pem: string): readonly string[] {
  const [leaf] = parseCertificates(pem);
  return entriesOf(leaf, "IP Address:").map((address) => ipaddr.parse(address).toString());
}

function parseCertificates(pem: string, most = MAX_CERTIFICATES): X509Certificate[] {
  const blocks = pem.match(BLOCK) ?? [];
  if (blocks.length === 0) throw new ChainError("certificate", "must hold a PEM certificate");
  if (blocks.length > most)
    throw new ChainError("certificate", `must hold at most ${most} certificates`);
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch (cause) {
      throw new ChainError("certificate", `certificate ${index + 1} cannot be read`, { cause });
    }
  });
}

function parseKey(pem: string): KeyObject {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(pem))
    throw new ChainError("private_key", "must not be encrypted with a passphrase");
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem))
    throw new ChainError("private_key", "must be a PEM private key");
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    // The cause might quote the text.
    throw new ChainError("private_key", "cannot be read");
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key;
  if (type !== "rsa" && type !== "ec")
    throw new ChainError("private_key", "must be an RSA or an elliptic-curve key");
  if (type === "rsa" && (details?.modulusLength ?? 0) < 2048)
    throw new ChainError("private_key", "must have at least 2048 bits");
  return key;
}

/** From the leaf to the last issuer that is there; a root is left out, because clients have it (RFC 8446 section 4.4.2). */
function order(leaf: X509Certificate, all: readonly X509Certificate[]): X509Certificate[] {
  const ordered = [leaf];
  for (let last = leaf; ;) {
    const next = all.find((other) => !ordered.includes(other) && last.checkIssued(other));
    if (next === undefined || next.checkIssued(next)) return ordered;
    ordered.push(next);
    last = next;
  }
}

function namesOf(leaf: X509Certificate): readonly string[] {
  return [...new Set(entriesOf(leaf, "DNS:").map((name) => name.toLowerCase()))];
}

/** Subject alternative names of one kind. */
function entriesOf(leaf: X509Certificate | undefined, prefix: string): string[] {
  return (leaf?.subjectAltName ?? "")
    .split(", ")
    .filter((entry) => entry.startsWith(prefix))
    .map((entry) => entry.slice(prefix.length));
}

function toPem(certificate: X509Certificate): string {
  const text = certificate.toString();
  return text.endsWith("\n") ? text : `${text}\n`;
}
