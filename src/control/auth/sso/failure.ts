// Why a sign-in with single sign-on did not succeed: the words that the browser is told; knows no protocol step.

/** Every word that `/?sso_error=` can carry, with what it means. */
export const ssoErrors = {
  setup_required: "no user exists yet; the first one is created in the setup",
  sso_disabled: "single sign-on was turned off",
  invalid_state:
    "the sign-in has expired, was used already, or was begun in another browser or under another address",
  access_denied: "the provider refused, or the person cancelled",
  provider_unreachable: "the provider did not answer in time",
  provider_error: "the provider answered with an error or with something that cannot be used",
  invalid_token: "the id token of the provider cannot be trusted",
  email_missing: "the provider did not tell an e-mail address",
  email_unverified: "the provider does not vouch for the e-mail address",
  domain_not_allowed: "the domain of the e-mail address may not sign in",
  no_account: "there is no user with this e-mail address, and none is created",
  identity_conflict: "the user with this e-mail address belongs to another account of the provider",
  unknown_role: "no role follows from what the provider tells",
  user_disabled: "the user is disabled",
  internal_error: "the gateway failed; its log says why",
} as const;

export type SsoErrorCode = keyof typeof ssoErrors;

/** Ends a sign-in. The message is for the log: it says what happened and holds no secret. */
export class SsoError extends Error {
  readonly code: SsoErrorCode;

  constructor(code: SsoErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }
}
