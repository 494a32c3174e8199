// Reads uploaded certificate revocation lists (RFC 5280); knows no certificate.
import { createSecureContext } from "node:tls";

const BLOCK = /-----BEGIN X509 CRL-----[\s\S]*?-----END X509 CRL-----/g;

/** What is wrong with a text that should hold PEM revocation lists and nothing else, worded to follow a field's name; null when nothing is. */
export function revocationsProblem(pem: string): string | null {
  const lists = pem.match(BLOCK) ?? [];
  if (lists.length === 0) return "must hold a PEM revocation list (X509 CRL)";
  if (pem.replace(BLOCK, "").includes("-----BEGIN")) return "must hold revocation lists only";
  for (const [index, list] of lists.entries())
    if (!isReadable(list)) return `revocation list ${index + 1} cannot be read`;
  return null;
}

function isReadable(crl: string): boolean {
  try {
    // The reader that will have to use it.
    createSecureContext({ crl });
    return true;
  } catch {
    return false;
  }
}
