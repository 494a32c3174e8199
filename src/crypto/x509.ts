// Makes and reads X.509 certificates; knows nothing of files, listeners or certificate authorities.
import { X509Certificate } from "node:crypto";

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
}

const DAY_MS = 86_400_000;
const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** A new ECDSA P-256 key with a certificate that it signs itself. */
export async function createSelfSigned(options: SelfSignedOptions): Promise<KeyPair> {
  // Loaded here and not above: every start would pay for what only the first one needs.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${options.names[0] ?? "localhost"}`,
    keys,
    signingAlgorithm: algorithm,
    // A client whose clock is a little behind must not find it not yet valid.
    notBefore: new Date(options.now - DAY_MS),
    notAfter: new Date(options.now + options.validDays * DAY_MS),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        ...options.names.map((value) => ({ type: "dns" as const, value })),
        ...options.addresses.map((value) => ({ type: "ip" as const, value })),
      ]),
    ],
  });
  const key = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { cert: `${certificate.toString("pem")}\n`, key: toPem("PRIVATE KEY", key) };
}

/** When the first certificate of a PEM text ends, in milliseconds since the Unix epoch; null when it is none. */
export function expiryOf(pem: string): number | null {
  try {
    return Date.parse(new X509Certificate(pem).validTo);
  } catch {
    return null;
  }
}

function toPem(label: string, der: ArrayBuffer): string {
  const lines = Buffer.from(der)
    .toString("base64")
    .match(/.{1,64}/g);
  return `-----BEGIN ${label}-----\n${(lines ?? []).join("\n")}\n-----END ${label}-----\n`;
}
