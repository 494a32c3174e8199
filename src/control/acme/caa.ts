// What CAA records (RFC 8659) allow an authority to issue, and what authorities call themselves in them; reads no record itself.
import type { CaaRecord } from "node:dns";
import { isDocument } from "../body.ts";
import { readText } from "../auth/sso/provider-request.ts";
import type { AcmeAccount } from "../../model/acme-account.ts";
import type { ChallengeType } from "../../model/certificate.ts";

export interface CaaQuestion {
  readonly records: readonly CaaRecord[];
  readonly isWildcard: boolean;
  readonly challenge: ChallengeType;
  /** Names by which the authority calls itself in these records. */
  readonly identities: readonly string[];
}

/** Null: it may issue; otherwise who may, or what is in the way, in words. */
export function caaRefusal({
  records,
  isWildcard,
  challenge,
  identities,
}: CaaQuestion): string | null {
  const plain = records.flatMap(({ issue }) => (issue === undefined ? [] : [issue]));
  const wild = records.flatMap(({ issuewild }) => (issuewild === undefined ? [] : [issuewild]));
  // RFC 8659 section 4.3: only where there are none for wildcards do the others hold for them.
  const values = isWildcard && wild.length > 0 ? wild : plain;
  if (values.length === 0) return null;
  const allowed = values.map(parse);
  const ours = allowed.filter(({ issuer }) => identities.includes(issuer));
  if (ours.length === 0) {
    const names = [...new Set(allowed.map(({ issuer }) => issuer))].filter((name) => name !== "");
    return names.length === 0 ? "they allow no authority" : `they only allow ${names.join(", ")}`;
  }
  const fits = ours.some(({ methods }) => methods === null || methods.includes(challenge));
  return fits ? null : `they do not allow the challenge ${challenge}`;
}

/** RFC 8659 section 4.2, RFC 8657 section 4. */
function parse(value: string) {
  const [issuer = "", ...parameters] = value.split(";").map((part) => part.trim().toLowerCase());
  const methods = parameters
    .map((parameter) => /^validationmethods\s*=\s*(.+)$/.exec(parameter)?.[1])
    .find((found) => found !== undefined);
  return { issuer, methods: methods?.split(",").map((method) => method.trim()) ?? null };
}

/** Of directories that do not say so themselves, by a part of their host. */
const knownIdentities: readonly (readonly [string, readonly string[]])[] = [
  ["letsencrypt.org", ["letsencrypt.org"]],
  ["zerossl.com", ["sectigo.com"]],
  ["pki.goog", ["pki.goog"]],
  ["buypass.com", ["buypass.com"]],
  ["ssl.com", ["ssl.com"]],
];

const TIMEOUT_MS = 5000;
const MAX_BYTES = 65_536;

/** RFC 8555 section 7.1.1: the directory says so. Empty when neither it nor anybody else does. */
export async function identitiesOf(account: AcmeAccount): Promise<readonly string[]> {
  const { directory_url: url, ca_certificates: ca } = account;
  try {
    const response = await fetch(url, {
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(ca === "" ? {} : { tls: { ca } }),
    });
    const directory: unknown = JSON.parse((await readText(response, MAX_BYTES)) ?? "");
    const meta = isDocument(directory) ? directory["meta"] : undefined;
    const told = isDocument(meta) ? meta["caaIdentities"] : undefined;
    if (Array.isArray(told) && told.length > 0)
      return told.map((name) => String(name).toLowerCase());
  } catch {
    // What is well known holds while it cannot be asked.
  }
  const host = URL.parse(url)?.hostname ?? "";
  const known = knownIdentities.find(([name]) => host === name || host.endsWith(`.${name}`));
  return known?.[1] ?? [];
}
