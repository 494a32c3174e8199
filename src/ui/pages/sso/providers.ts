// Hints for well-known identity providers, as in docs/sso.md; renders nothing.

interface ProviderHint {
  readonly name: string;
  /** Pattern of its issuer. */
  readonly issuer: string;
  readonly hint: string;
}

export const providers: readonly ProviderHint[] = [
  {
    name: "Keycloak",
    issuer: "https://keycloak.example.com/realms/REALM",
    hint: "Client authentication on, standard flow only. Roles: the claim realm_access.roles, if the mapper “realm roles” has “Add to ID token” on. Users need “Email verified”.",
  },
  {
    name: "Authentik",
    issuer: "https://authentik.example.com/application/o/SLUG/",
    hint: "Confidential client, strict redirect URL, and a signing key. The issuer ends with a slash. The groups claim is groups.",
  },
  {
    name: "Authelia",
    issuer: "https://auth.example.com",
    hint: "Put the hash of the secret into its configuration and the secret itself here. Add the scope groups below; the groups claim is groups.",
  },
  {
    name: "Google",
    issuer: "https://accounts.google.com",
    hint: "Google has no groups claim: choose a default role, and restrict the domains, or every Google account can sign in.",
  },
];
