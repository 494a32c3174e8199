// Evaluates CAA records (RFC 8659) for a CA, and finds the identities of CAs in them; reads no record itself.
import type { Fetch } from "../dialer/dialer.ts";
import type { CaaRecord } from "node:dns";
import { isDocument } from "../control/body.ts";
import { readText } from "../control/outgoing-request.ts";
import type { AcmeAccount } from "../model/acme-account.ts";
import type { ChallengeType } from "../model/certificate.ts";

export interface CaaQuestion {
  readonly records: readonly CaaRecord[];
  readonly isWildcard: boolean;
  readonly challenge: ChallengeType;
  /** Identities of the CA in these records. */
  readonly identities: readonly string[];
}

/** Null: it may issue; otherwise the reason. */
export function caaRefusal({
  records,
  isWildcard,
  challenge,
  identities,
}: CaaQuestion): string | null {
  const plain = records.flatMap(({ issue }) => (issue === undefined ? [] : [issue]));
  const wild = records.flatMap(({ issuewild }) => (issuewild === undefined ? [] : [issuewild]));
  // RFC 8659 section 4.3: issue applies to wildcards only without issuewild.
  const values = isWildcard && wild.length > 0 ? wild : plain;
  if (values.length === 0) return null;
  const allowed = values.map(parse);
  const ours = allowed.filter(({ issuer }) => identities.includes(issuer));
  if (ours.length === 0) {
    const names = [...new Set(allowed.map(({ issuer }) => issuer))].filter((name) => name !== "");
    return names.length === 0 ? "they permit no CA" : `they only permit ${names.join(", ")}`;
  }
  const fits = ours.some(({ methods }) => methods === null || methods.includes(challenge));
  return fits ? null : `they do not permit the challenge ${challenge}`;
}

/** RFC 8659 section 4.2, RFC 8657 section 4. */
function parse(value: string) {
  const [issuer = "", ...parameters] = value.split(";").map((part) => part.trim().toLowerCase());
  const methods = parameters
    .map((parameter) => /^validationmethods\s*=\s*(.+)$/.exec(parameter)?.[1])
    .find((found) => found !== undefined);
  return { issuer, methods: methods?.split(",").map((method) => method.trim()) ?? null };
}

/** Identities for directories without caaIdentities, by a part of their host. */
const knownIdentities: readonly (readonly [string, readonly string[]])[] = [
  ["letsencrypt.org", ["letsencrypt.org"]],
  ["zerossl.com", ["sectigo.com"]],
  ["pki.goog", ["pki.goog"]],
  ["buypass.com", ["buypass.com"]],
  ["ssl.com", ["ssl.com"]],
];

const TIMEOUT_MS = 5000;
const MAX_BYTES = 65_536;

/** From the directory (RFC 8555 section 7.1.1), else the known ones; empty: unknown. */
export async function identitiesOf(account: AcmeAccount, send: Fetch): Promise<readonly string[]> {
  const { directory_url: url, ca_certificates: ca } = account;
  try {
    const response = await send(url, {
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(ca === "" ? {} : { tls: { ca } }),
    });
    const directory: unknown = JSON.parse((await readText(response, MAX_BYTES)) ?? "");
    const meta = isDocument(directory) ? directory["meta"] : undefined;
    const declared = isDocument(meta) ? meta["caaIdentities"] : undefined;
    if (Array.isArray(declared) && declared.length > 0)
      return declared.map((name) => String(name).toLowerCase());
  } catch {
    // Known identities apply while the directory is unreachable.
  }
  const host = URL.parse(url)?.hostname ?? "";
  const known = knownIdentities.find(([name]) => host === name || host.endsWith(`.${name}`));
  return known?.[1] ?? [];
}
