// One attempt to issue a certificate: tries accounts in order until one succeeds; knows no schedule.
import type { Fetch } from "../dialer/dialer.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import { type AcmeAccount, directoryOf } from "../model/acme-account.ts";
import { type Certificate, isIssued } from "../model/certificate.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { CaClient, type KnownAccounts, type OpenedAccount } from "./ca-client.ts";
import type { ChallengeBoard } from "./challenge-board.ts";
import { type DnsParts, putUpRecord } from "./dns-proof.ts";
import { AcmeFailure } from "./failure.ts";
import { obtain } from "./order.ts";
import type { SharedExclusiveGate } from "./shared-exclusive-gate.ts";
import { certificateIdOf } from "./renewal-info.ts";
import type { AcmeState, OpenOrder } from "./state.ts";
import type { CertificateChain } from "../crypto/certificate-chain.ts";

export interface IssueParts {
  readonly config: GatewayConfig;
  readonly box: SecretBox;
  readonly board: ChallengeBoard;
  readonly listenerGate: SharedExclusiveGate;
  readonly dns: DnsParts;
  readonly known: KnownAccounts;
  readonly fetch: Fetch;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Stores the open order; null: none. */
  readonly saveOrder: (order: OpenOrder | null) => void | Promise<void>;
  /** An account has failed; the next one follows. */
  readonly failed: (account: AcmeAccount, failure: AcmeFailure) => void;
  /** A challenge response could not be removed. */
  readonly left: (error: unknown) => void;
}

export interface IssueResult {
  readonly chain: CertificateChain;
  readonly account: AcmeAccount;
}

/** Throws the failures of all accounts, or the signal's reason after an abort. */
export async function issue(
  certificate: Certificate,
  state: AcmeState,
  parts: IssueParts,
): Promise<IssueResult | readonly AcmeFailure[]> {
  const failures: AcmeFailure[] = [];
  const accounts = accountsFor(certificate, parts.config);
  // Resumes an open order first.
  const begunWith = accounts.find(({ id }) => id === state.order?.account_id);
  const order = begunWith === undefined ? accounts : [...new Set([begunWith, ...accounts])];
  if (order.length === 0) return [noAccount(certificate, parts.config)];
  for (const account of order) {
    try {
      return { chain: await issueWith(account, { certificate, state }, parts), account };
    } catch (error) {
      parts.signal.throwIfAborted();
      const failure = toFailure(error);
      parts.failed(account, failure);
      failures.push(failure);
    }
  }
  return failures;
}

interface Subject {
  readonly certificate: Certificate;
  readonly state: AcmeState;
}

/** Registers the account again when the CA has lost it, as test CAs do at every start. */
async function issueWith(
  account: AcmeAccount,
  subject: Subject,
  parts: IssueParts,
): Promise<CertificateChain> {
  try {
    return await orderWith(account, subject, parts);
  } catch (error) {
    if (!(error instanceof AcmeFailure) || error.type !== "accountDoesNotExist") throw error;
    return await orderWith(account, subject, parts);
  }
}

async function orderWith(
  account: AcmeAccount,
  { certificate, state }: Subject,
  parts: IssueParts,
): Promise<CertificateChain> {
  const { box, config, signal, left } = parts;
  const ca = await openCa(account, parts);
  const begun =
    state.order?.account_id === account.id && Bun.deepEquals(state.order.names, certificate.domains)
      ? state.order
      : null;
  const isReused = certificate.reuse_key && certificate.sealed_key !== null;
  const job = {
    certificate,
    begun,
    replaces: await replacedBy(ca, certificate, state),
    key: isReused ? box.open(certificate.sealed_key ?? "") : null,
  };
  const providers = [...config.dns_providers.values()].filter(
    ({ id, enabled }) =>
      enabled && (certificate.dns_provider_id === null || certificate.dns_provider_id === id),
  );
  try {
    return await obtain(job, {
      ca,
      board: parts.board,
      listenerGate: parts.listenerGate,
      save: parts.saveOrder,
      signal,
      left,
      seal: (text) => box.seal(text),
      unseal: (sealed) => box.open(sealed),
      putUpRecord: (proof) =>
        putUpRecord(
          proof,
          { providers, isChosen: certificate.dns_provider_id !== null, signal },
          parts.dns,
        ),
    });
  } catch (error) {
    if (error instanceof AcmeFailure && error.type === "accountDoesNotExist") ca.forget();
    throw error;
  }
}

export type OpenParts = Pick<IssueParts, "box" | "known" | "fetch" | "now" | "signal">;

/** With the key that the CA accepts: a key rollover may have been interrupted. */
export async function openCa(account: AcmeAccount, parts: OpenParts): Promise<CaClient> {
  return (await openWithNextKey(account, parts)) ?? (await openWithKey(account, parts));
}

/** Null: no rollover is open, or it has not reached the CA. */
export async function openWithNextKey(
  account: AcmeAccount,
  parts: OpenParts,
): Promise<CaClient | null> {
  const { sealed_next_key: next } = account;
  if (next === null) return null;
  return await CaClient.openExisting(openedWith(account, next, parts), parts);
}

const openWithKey = (account: AcmeAccount, parts: OpenParts) =>
  CaClient.open(openedWith(account, account.sealed_key, parts), parts);

function openedWith(account: AcmeAccount, key: string, { box }: OpenParts): OpenedAccount {
  const { sealed_eab_key: eab } = account;
  return { account, key: box.open(key), eabKey: eab === null ? null : box.open(eab) };
}

/** RFC 9773 section 5: only the issuing CA knows the replaced certificate. */
async function replacedBy(
  ca: CaClient,
  certificate: Certificate,
  { issued }: AcmeState,
): Promise<string | null> {
  if (!isIssued(certificate) || issued?.fingerprint !== certificate.fingerprint) return null;
  if (issued.account_id !== ca.account.id) return null;
  if ((issued.directory_url ?? ca.directoryUrl) !== ca.directoryUrl) return null;
  if ((await ca.renewalInfoUrl()) === null) return null;
  return certificateIdOf(certificate.certificate);
}

/** In order of attempts. */
export function accountsFor(
  { acme_account_ids: ids }: Certificate,
  { acme_accounts: all }: GatewayConfig,
): readonly AcmeAccount[] {
  if (ids.length === 0) return [...all.values()].filter(isUsable).slice(0, 1);
  return ids.flatMap((id) => {
    const account = all.get(id);
    return account !== undefined && isUsable(account) ? [account] : [];
  });
}

/** An account at the issuing CA, which alone knows the certificate. Throws an AcmeFailure. */
export function accountToRevokeWith(
  certificate: Certificate,
  { issued }: AcmeState,
  config: GatewayConfig,
): AcmeAccount {
  const own = config.acme_accounts.get(issued?.account_id ?? "");
  const others = accountsFor(certificate, config);
  const url = issued?.directory_url;
  const all = own === undefined ? others : [own, ...others];
  const found = all.find((account) => url === undefined || directoryOf(account) === url);
  if (found !== undefined) return found;
  const where = URL.parse(url ?? "")?.host;
  throw new AcmeFailure(
    where === undefined
      ? "there is no ACME account that could revoke it"
      : `there is no ACME account at its issuer ${where}`,
  );
}

/** An imported account may still lack terms_agreed. */
const isUsable = ({ enabled, terms_agreed }: AcmeAccount) => enabled && terms_agreed;

function noAccount({ acme_account_ids: ids }: Certificate, { acme_accounts: all }: GatewayConfig) {
  const named = ids.length === 0 ? [...all.values()] : ids.map((id) => all.get(id));
  const waiting = named.find((account) => account?.enabled === true && !account.terms_agreed);
  const why =
    waiting !== undefined
      ? `ACME account "${waiting.name}" requires terms_agreed`
      : named.length > 0
        ? "all ACME accounts for it are disabled"
        : "there is no ACME account: create one";
  return new AcmeFailure(why, { status: 403 });
}

/** Other errors are bugs, which must not stop other orders. */
function toFailure(error: unknown): AcmeFailure {
  if (error instanceof AcmeFailure) return error;
  const { message } = error as Error;
  return new AcmeFailure(message, { cause: error });
}
