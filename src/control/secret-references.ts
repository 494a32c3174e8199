// Reads secret fields of objects, sealed or by reference; knows no kind of object.
import type { SecretBox } from "../crypto/secret-box.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";

/** A stored secret field: sealed, a reference to a named secret, or none. */
export type StoredSecret = { readonly sealed: string } | { readonly $secret: string } | null;

/**
 * The plain value of a secret field; null when there is none. Rules reject references to missing secrets, so one here is a bug.
 */
export function resolveSecret(
  config: GatewayConfig,
  value: StoredSecret,
  box: SecretBox,
): string | null {
  if (value === null) return null;
  if ("sealed" in value) return box.open(value.sealed);
  for (const secret of config.secrets.values())
    if (secret.name === value.$secret) return box.open(secret.sealed_value);
  throw new Error(`there is no secret "${value.$secret}"`);
}
