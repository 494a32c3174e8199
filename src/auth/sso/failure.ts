// Errors of single sign-on: the codes for the browser and their meanings; knows no protocol step.
import { OidcError, type OidcFailure } from "../../oidc/failure.ts";

/** Every code of `/?sso_error=`, with its meaning. */
export const ssoErrors = {
  setup_required: "no user exists yet; the first one is created in the setup",
  sso_disabled: "single sign-on was turned off",
  invalid_state:
    "the sign-in has expired, was used already, or was begun in another browser or under another address",
  access_denied: "the provider denied the sign-in, or the user canceled it",
  provider_unreachable: "the provider did not respond in time",
  provider_error: "the provider returned an error or an unusable response",
  invalid_token: "the id token of the provider cannot be trusted",
  email_missing: "the provider sent no e-mail address",
  email_unverified: "the provider has not verified the e-mail address",
  domain_not_allowed: "the domain of the e-mail address may not sign in",
  no_account: "there is no user with this e-mail address, and none is created",
  identity_conflict: "the user with this e-mail address belongs to another account of the provider",
  unknown_role: "no role matches the claims of the provider",
  user_disabled: "the user is disabled",
  internal_error: "internal error; see the log of the gateway",
} as const;

export type SsoErrorCode = keyof typeof ssoErrors;

/** Ends a sign-in. The message is for the log and holds no secret. */
export class SsoError extends Error {
  readonly code: SsoErrorCode;

  constructor(code: SsoErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }
}

const CODES: Readonly<Record<OidcFailure, SsoErrorCode>> = {
  unreachable: "provider_unreachable",
  unusable: "provider_error",
  denied: "access_denied",
  refused: "provider_error",
  invalid: "invalid_token",
};

/** A failure at the provider as an error of single sign-on; null for any other error. */
export function toSsoError(error: unknown): SsoError | null {
  if (error instanceof OidcError) return new SsoError(CODES[error.kind], error.message);
  return error instanceof SsoError ? error : null;
}
