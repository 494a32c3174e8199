// What people call the kinds of credentials, and what each needs; draws nothing.
import type { Schemas } from "../../api/resources.ts";

export type Credential = Schemas["Credential"];
export type CredentialType = Credential["type"];

export interface CredentialKind {
  readonly type: CredentialType;
  readonly title: string;
  readonly text: string;
  /** What is shown once. */
  readonly secretWord: string;
  /** What `identifier` is; null: it has none. */
  readonly identifier: { readonly label: string; readonly text: string } | null;
  readonly algorithms: readonly string[];
  /** The plugin that asks for it. */
  readonly plugin: string;
}

export const kinds: readonly CredentialKind[] = [
  {
    ...{ type: "key", title: "API key", secretWord: "API key", identifier: null, algorithms: [] },
    ...{ plugin: "key-auth", text: "One text that is sent with each request. The simplest." },
  },
  {
    ...{ type: "basic", title: "Password", secretWord: "password", algorithms: [] },
    ...{ plugin: "basic-auth", text: "A user name and a password, as browsers ask for them." },
    identifier: { label: "User name", text: "Empty: the consumer's own" },
  },
  {
    ...{ type: "jwt", title: "Signed tokens", secretWord: "secret for tokens", plugin: "jwt" },
    text: "Tokens (JWT) that the client signs itself.",
    identifier: { label: "Key id", text: "Value of the key claim (iss). Empty: a random one" },
    algorithms: [
      ...["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
      ...["ES256", "ES384", "ES512", "EdDSA"],
    ],
  },
  {
    ...{ type: "hmac", title: "Signed requests", secretWord: "signing key", plugin: "hmac-auth" },
    text: "Each request is signed (RFC 9421).",
    identifier: { label: "Key id", text: "Empty: a random one" },
    algorithms: ["hmac-sha256", "ed25519"],
  },
];

const [first] = kinds;

export const kindOf = (type: string): CredentialKind =>
  kinds.find((kind) => kind.type === type) ?? (first as CredentialKind);

/** Whether both sides hold the same secret, instead of a key pair. */
export const isShared = (algorithm: string | null): boolean =>
  algorithm === null || algorithm.startsWith("HS") || algorithm === "hmac-sha256";

/** What tells a credential from others in a list and in questions. */
export function titleOf({ type, name, identifier, prefix }: Credential): string {
  if (name !== null) return name;
  const { title } = kindOf(type);
  const rest = identifier ?? (prefix === null ? "" : `${prefix}…`);
  return rest === "" ? title : `${title} ${rest}`;
}

/** Durations for lists of choices, in seconds. */
export const HOUR = 3600;
export const DAY = 24 * HOUR;
