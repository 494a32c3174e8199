// Reads the identity from a client certificate, and compares it with lists of names; knows no request.
import { X509Certificate } from "node:crypto";
import { normalizeAddress } from "../../pdk/net.ts";

export interface AlternativeName {
  readonly kind: "dns" | "address" | "uri" | "email";
  /** DNS names in lower case, addresses in canonical form. */
  readonly value: string;
}

export interface Identity {
  /** SHA-256 of the DER, hexadecimal, lower case. */
  readonly fingerprint: string;
  readonly names: readonly AlternativeName[];
  /** Null when there is none, or several, which would be ambiguous. */
  readonly commonName: string | null;
  /** Milliseconds since 1970. */
  readonly notAfter: number;
}

/** Null when the bytes are no certificate. */
export function readIdentity(der: Uint8Array): Identity | null {
  try {
    const certificate = new X509Certificate(der);
    const { CN: commonName } = (certificate.toLegacyObject().subject ?? {}) as {
      readonly CN?: unknown;
    };
    const notAfter = Date.parse(certificate.validTo);
    if (Number.isNaN(notAfter)) return null;
    return {
      fingerprint: toFingerprint(certificate.fingerprint256),
      names: readNames(certificate.subjectAltName ?? ""),
      commonName: typeof commonName === "string" && commonName !== "" ? commonName : null,
      notAfter,
    };
  } catch {
    return null;
  }
}

export const toFingerprint = (text: string): string => text.replaceAll(":", "").toLowerCase();

/** A value with a comma, a quote or a control character in it is written as a JSON text. */
const NAME = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|(?!")[^,]*)(?:, |$)/y;

const kinds: Readonly<Record<string, AlternativeName["kind"]>> = {
  DNS: "dns",
  "IP Address": "address",
  URI: "uri",
  email: "email",
};

/** Drops names of other kinds; returns none for a text that the runtime would not write. */
export function readNames(text: string): AlternativeName[] {
  const names: AlternativeName[] = [];
  NAME.lastIndex = 0;
  while (NAME.lastIndex < text.length) {
    const [, word = "", written] = NAME.exec(text) ?? [];
    if (written === undefined) return [];
    const kind = Object.hasOwn(kinds, word) ? kinds[word] : undefined;
    const value = written.startsWith('"') ? (JSON.parse(written) as string) : written;
    if (kind !== undefined && value !== "") names.push({ kind, value: comparable(kind, value) });
  }
  return names;
}

function comparable(kind: AlternativeName["kind"], value: string): string {
  if (kind === "dns") return value.toLowerCase();
  return kind === "address" ? (normalizeAddress(value) ?? value) : value;
}

/** Whether a certificate has one of the names. */
export function compileNames(wanted: readonly string[]): (identity: Identity) => boolean {
  const exact = new Set<string>();
  const hosts = new Set<string>();
  const suffixes = new Set<string>();
  for (const text of wanted) {
    if (text.startsWith("*.")) suffixes.add(text.slice(1).toLowerCase());
    exact.add(normalizeAddress(text) ?? text);
    hosts.add(text.toLowerCase());
  }
  // The parent domain: `.example.com` of `a.example.com`.
  const above = (name: string) => name.slice(Math.max(0, name.indexOf(".")));
  const isWanted = ({ kind, value }: AlternativeName) =>
    kind === "dns"
      ? hosts.has(value) || (value.indexOf(".") > 0 && suffixes.has(above(value)))
      : exact.has(value);
  return ({ names }) => names.some(isWanted);
}
