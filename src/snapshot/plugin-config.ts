// The configuration of a plugin instance as its handlers get it: secrets decrypted, defaults filled in; knows no store.
import { decode } from "../model/decode.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Plugin } from "../model/plugin.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import { type KindedText, mapTexts, secret } from "../pdk/fields.ts";

/** A field for a secret, for objects that are configured like plugins. */
export const secretText = secret;

/** An object with a schema for its `config`: plugins, and objects that are configured like them. */
export type Configurable = Pick<AnyPlugin, "config">;

/** All plugins that the gateway has, by name. */
export type PluginCatalogue = ReadonlyMap<string, AnyPlugin>;

/** Decrypts secrets and resolves references to them. */
export interface SecretContext {
  readonly secrets: GatewayConfig["secrets"];
  readonly openSealed: (sealed: string) => string;
}

/** Throws a 400 for the first value that does not match the schema; a missing secret is the empty string. */
export function openConfig(
  plugin: Pick<Plugin, "config">,
  definition: Configurable,
  context: SecretContext,
): Readonly<Record<string, unknown>> {
  const opened = mapTexts(definition.config, plugin.config, ({ kind, value }) =>
    kind === "secret" ? openSecret(value, context) : value,
  );
  return decode(definition.config, opened);
}

/** A copy in which `replace` maps every text with a kind, see `mapTexts`. */
export const mapConfig = (
  definition: Configurable,
  config: unknown,
  replace: (text: KindedText) => unknown,
): unknown => mapTexts(definition.config, config, replace);

/** What the field of a secret holds: its value, or what it is if it is none. */
export function openSecret(value: unknown, { secrets, openSealed }: SecretContext): unknown {
  if (typeof value !== "object" || value === null) return value;
  const stored = value as { readonly sealed?: unknown; readonly $secret?: unknown };
  if (typeof stored.sealed === "string") return openSealed(stored.sealed);
  for (const secret of secrets.values())
    if (secret.name === stored.$secret) return openSealed(secret.sealed_value);
  // A separate rule reports the missing one.
  return typeof stored.$secret === "string" ? "-" : value;
}
