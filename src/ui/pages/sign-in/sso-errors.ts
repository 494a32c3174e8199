// What the words mean that a failed single sign-on ends with; draws nothing.

/** See docs/sso.md. What to do is said to whoever wanted to sign in, who is seldom the admin. */
const texts: Readonly<Record<string, string>> = {
  setup_required:
    "There is no user yet. The first administrator has to be created with a password.",
  sso_disabled: "It was turned off while you were signing in.",
  invalid_state:
    "The sign-in was too old, was used already, or was begun in another browser or under another address. Try again.",
  access_denied: "The identity provider refused, or you cancelled.",
  provider_unreachable: "The identity provider did not answer in time. Try again later.",
  provider_error:
    "The identity provider answered with an error. An admin of the gateway should look at the settings.",
  invalid_token: "The identity provider's answer cannot be trusted.",
  email_missing: "The identity provider does not tell your e-mail address.",
  email_unverified: "The identity provider has not verified your e-mail address.",
  domain_not_allowed: "The domain of your e-mail address may not sign in here.",
  no_account: "There is no user with your e-mail address here. Ask an admin to create one.",
  identity_conflict:
    "The user with your e-mail address belongs to another account of the provider.",
  unknown_role: "None of your groups may sign in here. Ask an admin.",
  user_disabled: "Your user is disabled here. Ask an admin.",
  internal_error: "The gateway failed. Its log says why.",
};

export const ssoErrorText = (code: string): string =>
  Object.hasOwn(texts, code) ? (texts[code] ?? "") : "Try again, or ask an admin of the gateway.";
