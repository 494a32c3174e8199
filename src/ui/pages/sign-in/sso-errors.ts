// Texts for the error codes of single sign-on; renders nothing.

/** See docs/sso.md. The texts address the user who signs in, rarely the admin. */
const texts: Readonly<Record<string, string>> = {
  setup_required: "No users exist yet. The first administrator must be created with a password.",
  sso_disabled: "Single sign-on was turned off during the sign-in.",
  invalid_state:
    "The sign-in expired, was used already, or began in another browser or under another address. Try again.",
  access_denied: "The identity provider refused, or you cancelled.",
  provider_unreachable: "The identity provider did not respond in time. Try again later.",
  provider_error:
    "The identity provider responded with an error. An admin of the gateway should check the settings.",
  invalid_token: "The response of the identity provider is not valid.",
  email_missing: "The identity provider did not return your e-mail address.",
  email_unverified: "The identity provider has not verified your e-mail address.",
  domain_not_allowed: "The domain of your e-mail address is not allowed to sign in.",
  no_account: "There is no user with your e-mail address here. Ask an admin to create one.",
  identity_conflict:
    "The user with your e-mail address is linked to another account of the provider.",
  unknown_role: "None of your groups is allowed to sign in. Ask an admin.",
  user_disabled: "Your user is disabled here. Ask an admin.",
  internal_error: "The gateway failed. Its log has details.",
};

export const ssoErrorText = (code: string): string =>
  Object.hasOwn(texts, code) ? (texts[code] ?? "") : "Try again, or ask an admin of the gateway.";
