// What all authentication plugins have in common: their shared settings, who stands in for nobody, refusals; knows no scheme.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject } from "./answer.ts";
import type { CredentialMaterial, CredentialView, RequestContext } from "./context.ts";
import { consumerReference, flag, nullable } from "./fields.ts";

/** Settings that every authentication plugin has. */
export const authenticationFields = {
  anonymous_consumer: nullable(
    consumerReference({
      description:
        "Consumer that stands in for clients that show nothing valid; null: they are refused",
    }),
  ),
  hide_credentials: flag(true, "Keep what the client has shown from going upstream"),
  realm: t.String({
    default: "sluice",
    maxLength: 128,
    pattern: '^[^"\\\\\\u0000-\\u001f\\u007f-\\uffff]*$',
    errorMessage: "must be printable ASCII without quotes and backslashes",
    description: "Name of what is protected, in WWW-Authenticate",
  }),
  run_on_preflight: flag(
    false,
    "Also refuse OPTIONS requests of browsers that ask for permission (CORS) and never carry credentials",
  ),
};

export interface AuthenticationConfig {
  readonly anonymous_consumer: string | null;
  readonly hide_credentials: boolean;
  readonly realm: string;
  readonly run_on_preflight: boolean;
}

/** A preflight request (Fetch standard, CORS protocol). */
export const isPreflight = (context: RequestContext): boolean =>
  context.method === "OPTIONS" &&
  context.header("origin") !== null &&
  context.header("access-control-request-method") !== null;

/** Whether there is nothing to ask of this request. */
export function isExempt(
  context: RequestContext,
  config: Pick<AuthenticationConfig, "anonymous_consumer" | "run_on_preflight">,
): boolean {
  if (!config.run_on_preflight && isPreflight(context)) return true;
  // Another plugin with a stand-in of its own has recognised the client already: one of them is enough.
  return config.anonymous_consumer !== null && context.consumer !== null && !context.isAnonymous;
}

/** Refuses with 401, or lets the stand-in pass when there is one. */
export function refuse(
  context: RequestContext,
  config: AuthenticationConfig,
  refusal: {
    /** `auth.key.missing`. */
    readonly reason: string;
    readonly detail: string;
    /** Value of WWW-Authenticate, without the realm that is added; a list gives several. */
    readonly challenge: string;
    readonly status?: 401 | 403;
  },
): Outcome {
  const { anonymous_consumer: anonymous, realm } = config;
  const { reason, detail, challenge, status = 401 } = refusal;
  const standIn = anonymous === null ? null : context.consumers.byId(anonymous);
  if (standIn !== null && context.authMode !== "require") {
    context.note(reason);
    // Whoever was recognised before stays who it is.
    if (context.consumer === null) context.authenticate(standIn, { isAnonymous: true });
    return undefined;
  }
  const [scheme = "", ...parameters] = challenge.split(" ");
  const field = [`realm="${realm}"`, ...(parameters.length === 0 ? [] : [parameters.join(" ")])];
  return reject(status, reason, {
    detail,
    headers: { "WWW-Authenticate": `${scheme} ${field.join(", ")}` },
  });
}

/** Stands for what a token said, in the memory of a request. */
const CLAIMS = {};

/** Keeps the claims of a token that was accepted, for the plugins behind. */
export function keepClaims(
  context: RequestContext,
  claims: Readonly<Record<string, unknown>>,
): void {
  context.memory.set(CLAIMS, claims);
}

/** Claims of the token that an authentication has accepted; null: there was none. */
export const claimsOf = (context: RequestContext): Readonly<Record<string, unknown>> | null =>
  (context.memory.get(CLAIMS) as Readonly<Record<string, unknown>> | undefined) ?? null;

/** Whether neither its secret nor the one before is good any more. */
export const hasExpired = ({ expiresAt }: CredentialView, now: number): boolean =>
  expiresAt !== null && now >= expiresAt;

/** What of a credential is valid now: the present secret and, for a while, the one before. */
export function validMaterial(credential: CredentialView, now: number): CredentialMaterial[] {
  if (hasExpired(credential, now)) return [];
  const { previous } = credential;
  return previous !== null && now < previous.until ? [credential, previous] : [credential];
}
