// The fields of the form of single sign-on, converted from and to the API's objects; renders nothing.
import type { Schemas } from "../../api/resources.ts";

export type Sso = Schemas["Sso"];

/** What to do with the client secret, which is write-only. */
export type SecretChoice = "keep" | "new" | "reference" | "none";

export interface SsoValues extends Pick<
  Sso,
  | "enabled"
  | "issuer"
  | "client_id"
  | "token_auth"
  | "scopes"
  | "role_claim"
  | "role_map"
  | "allowed_domains"
  | "auto_provision"
  | "button_label"
> {
  /** Empty: users without a mapped group are denied. */
  readonly default_role: string;
  readonly secretChoice: SecretChoice;
  /** The new secret, or the name of a stored secret. */
  readonly client_secret: string;
}

export function toValues(sso: Sso): SsoValues {
  const { updated_at: _, client_secret_set: isSet, default_role, ...rest } = sso;
  return {
    ...rest,
    default_role: default_role ?? "",
    secretChoice: isSet ? "keep" : "new",
    client_secret: "",
  };
}

/** Without the secret, so that two versions can be compared. */
export function toBody({ secretChoice: _, client_secret: __, default_role, ...rest }: SsoValues) {
  return { ...rest, default_role: default_role === "" ? null : default_role };
}

/** The secret's part of the body; empty: the stored secret is unchanged. */
export function secretOf({ secretChoice, client_secret: text }: SsoValues): object {
  if (secretChoice === "none") return { client_secret: null };
  if (text === "" || secretChoice === "keep") return {};
  return { client_secret: secretChoice === "reference" ? { $secret: text } : text };
}

const isUrl = (text: string) => /^https?:\/\/[^\s?#]+$/.test(text);

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  issuer: (value: string, { enabled }: SsoValues) =>
    value === "" && enabled
      ? "Required before it can be enabled"
      : value === "" || isUrl(value)
        ? null
        : "Must be an https:// URL without query",
  client_id: (value: string, { enabled }: SsoValues) =>
    value === "" && enabled ? "Required before it can be enabled" : null,
  client_secret: (value: string, { secretChoice }: SsoValues) =>
    secretChoice === "reference" && value === "" ? "Name of a stored secret is required" : null,
};
