// What is special about well-known identity providers, as docs/sso.md says it; draws nothing.

interface ProviderHint {
  readonly name: string;
  /** What its issuer looks like. */
  readonly issuer: string;
  readonly hint: string;
}

export const providers: readonly ProviderHint[] = [
  {
    name: "Keycloak",
    issuer: "https://keycloak.example.com/realms/REALM",
    hint: "Client authentication on, standard flow only. Roles: the claim realm_access.roles, once the mapper “realm roles” has “Add to ID token” on. Users need “Email verified”.",
  },
  {
    name: "Authentik",
    issuer: "https://authentik.example.com/application/o/SLUG/",
    hint: "Confidential, redirect address strict, and a signing key selected. The issuer ends with a slash. Groups come in the claim groups.",
  },
  {
    name: "Authelia",
    issuer: "https://auth.example.com",
    hint: "Put the hash of the secret into its configuration and the secret itself here. Add the scope groups below; groups come in the claim groups.",
  },
  {
    name: "Google",
    issuer: "https://accounts.google.com",
    hint: "Google tells no groups: choose a role for everybody, and name your domain, or everybody with a Google account could come in.",
  },
];
