// Labels of the credential types, and the fields of each; renders nothing.
import type { Schemas } from "../../api/resources.ts";

export type Credential = Schemas["Credential"];
export type CredentialType = Credential["type"];

export interface CredentialKind {
  readonly type: CredentialType;
  readonly title: string;
  readonly text: string;
  /** What is shown once. */
  readonly secretWord: string;
  /** Label of `identifier`; null: the type has none. */
  readonly identifier: { readonly label: string; readonly text: string } | null;
  readonly algorithms: readonly string[];
  /** The plugin that verifies it. */
  readonly plugin: string;
}

export const kinds: readonly CredentialKind[] = [
  {
    type: "key",
    title: "API key",
    secretWord: "API key",
    identifier: null,
    algorithms: [],
    plugin: "key-auth",
    text: "One value in a header of each request.",
  },
  {
    type: "basic",
    title: "Password",
    secretWord: "password",
    algorithms: [],
    plugin: "basic-auth",
    text: "A user name and a password (HTTP basic authentication).",
    identifier: { label: "User name", text: "Empty: the consumer's own" },
  },
  {
    type: "jwt",
    title: "JWT",
    secretWord: "JWT secret",
    plugin: "jwt",
    text: "Tokens that the client signs itself.",
    identifier: { label: "Key id", text: "Value of the key claim (iss). Empty: generated" },
    algorithms: [
      ...["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
      ...["ES256", "ES384", "ES512", "EdDSA"],
    ],
  },
  {
    type: "hmac",
    title: "HTTP message signatures",
    secretWord: "signing key",
    plugin: "hmac-auth",
    text: "The client signs each request (RFC 9421).",
    identifier: { label: "Key id", text: "Empty: generated" },
    algorithms: ["hmac-sha256", "ed25519"],
  },
];

const [first] = kinds;

export const kindOf = (type: string): CredentialKind =>
  kinds.find((kind) => kind.type === type) ?? (first as CredentialKind);

/** Whether client and gateway share a secret, instead of a key pair. */
export const isShared = (algorithm: string | null): boolean =>
  algorithm === null || algorithm.startsWith("HS") || algorithm === "hmac-sha256";

/** Distinguishes a credential in lists and dialogs. */
export function titleOf({ type, name, identifier, prefix }: Credential): string {
  if (name !== null) return name;
  const { title } = kindOf(type);
  const rest = identifier ?? (prefix === null ? "" : `${prefix}…`);
  return rest === "" ? title : `${title} ${rest}`;
}

/** Durations for lists of choices, in seconds. */
export const HOUR = 3600;
export const DAY = 24 * HOUR;
