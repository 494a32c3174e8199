// The certificate that HTTPS listeners present when there is no other one; knows no listener.
import { createPrivateKey } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Log } from "../log.ts";
import { createSelfSigned, expiryOf, type KeyPair } from "./x509.ts";

const DAY_MS = 86_400_000;
const RENEW_BEFORE_MS = 30 * DAY_MS;

/** Reads it from the data directory; makes a new one when there is none, or none that lasts for 30 days more. */
export async function loadDefaultCertificate({
  dataDir,
  now,
  log,
}: {
  readonly dataDir: string;
  readonly now: number;
  readonly log: Log;
}): Promise<KeyPair> {
  const path = join(dataDir, "sluice.pem");
  const stored = read(path);
  if (stored !== null && (expiryOf(stored.cert) ?? 0) - now > RENEW_BEFORE_MS) return stored;
  const pair = await createSelfSigned({
    names: [...new Set(["localhost", hostname().toLowerCase()])],
    addresses: ["127.0.0.1", "::1"],
    now,
    validDays: 825,
  });
  // Renamed into place: a crash in between must not leave half a key behind.
  writeFileSync(`${path}.new`, pair.cert + pair.key, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  log.info("made a self-signed certificate for HTTPS listeners", { path });
  return pair;
}

function read(path: string): KeyPair | null {
  try {
    const text = readFileSync(path, "utf8");
    const keyStart = text.indexOf("-----BEGIN PRIVATE KEY-----");
    if (keyStart === -1) return null;
    const pair = { cert: text.slice(0, keyStart), key: text.slice(keyStart) };
    createPrivateKey(pair.key);
    return pair;
  } catch {
    return null;
  }
}
