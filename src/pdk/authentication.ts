// Common parts of authentication plugins: shared settings, the anonymous consumer, rejections; knows no scheme.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject } from "./response.ts";
import type { CredentialMaterial, CredentialView, RequestContext } from "./context.ts";
import { consumerReference, flag, nullable } from "./fields.ts";

/** Settings that every authentication plugin has. */
export const authenticationFields = {
  anonymous_consumer: nullable(
    consumerReference({
      description: "Consumer for clients without valid credentials; null: they are rejected",
    }),
  ),
  hide_credentials: flag(true, "Remove the client's credentials from the upstream request"),
  realm: t.String({
    default: "sluice",
    maxLength: 128,
    pattern: '^[^"\\\\\\u0000-\\u001f\\u007f-\\uffff]*$',
    errorMessage: "must be printable ASCII without quotes and backslashes",
    description: "Protection realm in WWW-Authenticate",
  }),
  run_on_preflight: flag(
    false,
    "Also authenticate CORS preflight requests, which never carry credentials",
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

/** Whether the request needs no authentication by this plugin. */
export function isExempt(
  context: RequestContext,
  config: Pick<AuthenticationConfig, "anonymous_consumer" | "run_on_preflight">,
): boolean {
  if (!config.run_on_preflight && isPreflight(context)) return true;
  // Another plugin has authenticated the client: with an anonymous consumer, one of several plugins is enough.
  return config.anonymous_consumer !== null && context.consumer !== null && !context.isAnonymous;
}

/** Rejects with 401, or continues as the anonymous consumer if there is one. */
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
  const { anonymous_consumer: anonymousId, realm } = config;
  const { reason, detail, challenge, status = 401 } = refusal;
  const anonymousConsumer = anonymousId === null ? null : context.consumers.byId(anonymousId);
  if (anonymousConsumer !== null && context.authMode !== "require") {
    context.note(reason);
    // A client that was authenticated before keeps its identity.
    if (context.consumer === null) context.authenticate(anonymousConsumer, { isAnonymous: true });
    return undefined;
  }
  const [scheme = "", ...parameters] = challenge.split(" ");
  const field = [`realm="${realm}"`, ...(parameters.length === 0 ? [] : [parameters.join(" ")])];
  return reject(status, reason, {
    detail,
    headers: { "WWW-Authenticate": `${scheme} ${field.join(", ")}` },
  });
}

/** Key of the token's claims in the memory of a request. */
const CLAIMS = {};

/** Stores the claims of an accepted token for later plugins. */
export function storeClaims(
  context: RequestContext,
  claims: Readonly<Record<string, unknown>>,
): void {
  context.memory.set(CLAIMS, claims);
}

/** Claims of the token that an authentication plugin has accepted; null: there was none. */
export const claimsOf = (context: RequestContext): Readonly<Record<string, unknown>> | null =>
  (context.memory.get(CLAIMS) as Readonly<Record<string, unknown>> | undefined) ?? null;

/** Whether neither its secret nor the previous one is valid any more. */
export const hasExpired = ({ expiresAt }: CredentialView, now: number): boolean =>
  expiresAt !== null && now >= expiresAt;

/** The valid secrets of a credential: the present one and, for a while after a rotation, the previous one. */
export function validMaterial(credential: CredentialView, now: number): CredentialMaterial[] {
  if (hasExpired(credential, now)) return [];
  const { previous } = credential;
  return previous !== null && now < previous.until ? [credential, previous] : [credential];
}
