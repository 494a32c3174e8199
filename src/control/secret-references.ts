// Reads secret fields of objects, sealed or referred to by name; knows no kind of object.
import type { SecretBox } from "../crypto/secret-box.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";

/** A secret field as it is stored: sealed in place, by the name of a secret, or none. */
export type StoredSecret = { readonly sealed: string } | { readonly $secret: string } | null;

/**
 * The value of a secret field in the clear; null when there is none. Rules keep names of missing secrets out of a
 * configuration in service, so one here is a mistake of ours.
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
