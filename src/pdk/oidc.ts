// OpenID Connect for plugins; only passes on.
export { OidcClient } from "../oidc/client.ts";
export type { BegunSignIn, RenewedTokens } from "../oidc/client.ts";
export { OidcError } from "../oidc/failure.ts";
export { OidcProvider } from "../oidc/provider.ts";
export type { Claims } from "../oidc/verification.ts";
