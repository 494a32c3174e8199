// Errors of ACME requests, worded for the operator; sends no request.

/** A problem document (RFC 7807) as far as ACME uses it, RFC 8555 section 6.7. */
export interface AcmeProblem {
  readonly type?: string;
  readonly detail?: string;
  readonly subproblems?: readonly (AcmeProblem & {
    readonly identifier?: { readonly value?: string };
  })[];
}

export interface AcmeFailureOptions {
  /** Of the problem, without `urn:ietf:params:acme:error:`; empty when there was none. */
  readonly type?: string;
  /** Of the response; 0 when there was none. */
  readonly status?: number;
  /** Retry-After of the CA; null: none. */
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/** A failed order or a failed step; the message is for the operator. */
export class AcmeFailure extends Error {
  readonly type: string;
  readonly status: number;
  readonly retryAfterMs: number | null;

  constructor(message: string, options: AcmeFailureOptions = {}) {
    super(message, { cause: options.cause });
    this.name = "AcmeFailure";
    this.type = options.type ?? "";
    this.status = options.status ?? 0;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }

  /** Whether the CA was unreachable or failed itself, so that the order was not judged. */
  get isOutage(): boolean {
    return this.type !== "rateLimited" && (this.type === "unreachable" || this.status >= 500);
  }
}

const URN = "urn:ietf:params:acme:error:";

/** What each type means to the operator. */
const meanings: Readonly<Record<string, string>> = {
  accountDoesNotExist: "the CA has no such account",
  alreadyReplaced: "the certificate was replaced already",
  badCSR: "the CA rejects the certificate signing request",
  badNonce: "the CA rejected several nonces in a row",
  caa: "a CAA record forbids this CA to issue",
  connection: "the CA could not connect",
  dns: "the CA could not resolve the name",
  externalAccountRequired:
    "the CA requires an external account binding: set eab_key_id and eab_hmac_key",
  incorrectResponse: "the CA received a wrong challenge response",
  invalidContact: "the CA rejects the e-mail address",
  invalidProfile: "the CA has no such profile",
  malformed: "the CA rejects the request as malformed",
  orderNotReady: "the CA is not ready yet",
  rateLimited: "the CA's rate limit is reached",
  rejectedIdentifier: "the CA does not issue for this name",
  serverInternal: "the CA has an internal error",
  tls: "the CA could not make a TLS connection",
  unauthorized: "the CA received a wrong challenge response, or the account lacks permission",
  unsupportedContact: "the CA rejects the e-mail address",
  unsupportedIdentifier: "the CA does not issue for names of this kind",
  userActionRequired: "the CA's terms of service require a new agreement",
};

/** The last part of a problem's type. */
export const typeOf = ({ type = "" }: AcmeProblem): string =>
  type.startsWith(URN) ? type.slice(URN.length) : "";

const MAX_DETAIL = 500;

/** One sentence: the meaning, then the CA's own detail. */
export function describeAcmeProblem(problem: AcmeProblem): string {
  const meaning = meanings[typeOf(problem)];
  const own = [problem.detail, ...(problem.subproblems ?? []).map(describePart)]
    .filter((text) => text !== undefined && text !== "")
    .join("; ")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .slice(0, MAX_DETAIL);
  if (meaning === undefined)
    return own === "" ? "the CA rejected the request without a reason" : own;
  return own === "" ? meaning : `${meaning}: ${own}`;
}

const describePart = ({ identifier, detail }: NonNullable<AcmeProblem["subproblems"]>[number]) =>
  identifier?.value === undefined ? detail : `${identifier.value}: ${detail ?? ""}`;
