// Reads the certificate and key of the management API, and reports what is wrong with them.
import { fileProblem } from "../model/file-problem.ts";
import { readRegular, TrustError } from "../control/trusted-file.ts";
import { type CertificateChain, ChainError, readChain } from "../crypto/certificate-chain.ts";
import type { KeyPair } from "../crypto/x509.ts";

/** Paths of PEM files. */
export interface AdminTlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** A problem that the operator can fix; its message holds nothing of the key. */
export class AdminTlsError extends Error {}

/** Throws an AdminTlsError. `now` is in milliseconds. */
export function loadAdminTls(files: AdminTlsFiles, now: number): KeyPair {
  const { certificate, key, notAfter } = readBoth(files);
  if (Date.parse(notAfter) <= now)
    throw new AdminTlsError(`--admin-tls-cert: ${files.cert} expired on ${notAfter}`);
  return { cert: certificate, key };
}

function readBoth(files: AdminTlsFiles): CertificateChain {
  const cert = readText("admin-tls-cert", files.cert);
  const key = readText("admin-tls-key", files.key);
  try {
    return readChain(cert, key);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    const isKey = error.field === "private_key";
    const source = isKey ? `--admin-tls-key: ${files.key}` : `--admin-tls-cert: ${files.cert}`;
    throw new AdminTlsError(`${source} ${error.message}`, { cause: error });
  }
}

function readText(flag: string, path: string): string {
  try {
    return readRegular(path).toString("utf8");
  } catch (cause) {
    if (cause instanceof TrustError)
      throw new AdminTlsError(`--${flag}: ${cause.message}`, { cause });
    throw new AdminTlsError(`--${flag}: ${path} cannot be read: ${fileProblem(cause)}`, { cause });
  }
}
