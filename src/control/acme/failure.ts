// What can go wrong with an authority, in words that a person can act on; talks to nobody.

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
  /** Of the answer; 0 when there was none. */
  readonly status?: number;
  /** How long the authority wants to be left alone; null: it does not say. */
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
}

/** An order, or a part of it, that failed; the message is for people. */
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

  /** Whether nobody has judged anything: the authority could not be asked, or is broken itself. */
  get isOutage(): boolean {
    return this.type !== "rateLimited" && (this.type === "unreachable" || this.status >= 500);
  }
}

const URN = "urn:ietf:params:acme:error:";

/** What each type means to the person who has set up the certificate. */
const meanings: Readonly<Record<string, string>> = {
  accountDoesNotExist: "the authority does not know the account",
  alreadyReplaced: "the certificate has been replaced already",
  badCSR: "the authority does not take the request",
  badNonce: "the authority refused several nonces in a row",
  caa: "a CAA record forbids this authority to issue",
  connection: "the authority could not connect",
  dns: "the authority could not look the name up",
  externalAccountRequired:
    "the authority asks for an external account binding: set eab_key_id and eab_hmac_key",
  incorrectResponse: "the authority got a wrong answer",
  invalidContact: "the authority does not take the e-mail address",
  invalidProfile: "the authority has no such profile",
  malformed: "the authority does not take the request",
  orderNotReady: "the authority is not ready yet",
  rateLimited: "the authority's limit is reached",
  rejectedIdentifier: "the authority does not issue for this name",
  serverInternal: "the authority has an error of its own",
  tls: "the authority could not make a TLS connection",
  unauthorized: "the authority got a wrong answer, or the account may not do this",
  unsupportedContact: "the authority does not take the e-mail address",
  unsupportedIdentifier: "the authority does not issue for names of this kind",
  userActionRequired: "the authority's terms of service have to be agreed to anew",
};

/** The last part of a problem's type. */
export const typeOf = ({ type = "" }: AcmeProblem): string =>
  type.startsWith(URN) ? type.slice(URN.length) : "";

const MAX_DETAIL = 500;

/** One sentence: what it means, then what the authority itself says. */
export function describeAcmeProblem(problem: AcmeProblem): string {
  const meaning = meanings[typeOf(problem)];
  const own = [problem.detail, ...(problem.subproblems ?? []).map(describePart)]
    .filter((text) => text !== undefined && text !== "")
    .join("; ")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .slice(0, MAX_DETAIL);
  if (meaning === undefined) return own === "" ? "the authority refused without a reason" : own;
  return own === "" ? meaning : `${meaning}: ${own}`;
}

const describePart = ({ identifier, detail }: NonNullable<AcmeProblem["subproblems"]>[number]) =>
  identifier?.value === undefined ? detail : `${identifier.value}: ${detail ?? ""}`;
