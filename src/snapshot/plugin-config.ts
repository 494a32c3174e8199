// The configuration of a plugin instance as its handlers get it: secrets opened, defaults filled in; knows no store.
import { decode } from "../model/decode.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Plugin } from "../model/plugin.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import { type KindedText, mapTexts, secret } from "../pdk/fields.ts";

/** A field for a secret, for what is configured as plugins are. */
export const secretText = secret;

/** What has a schema for a free `config`: plugins, and what is configured in their manner. */
export type Configurable = Pick<AnyPlugin, "config">;

/** All plugins that the gateway has, by name. */
export type PluginCatalogue = ReadonlyMap<string, AnyPlugin>;

/** Of a configuration, what secrets in it are opened with. */
export interface SecretContext {
  readonly secrets: GatewayConfig["secrets"];
  readonly openSealed: (sealed: string) => string;
}

/** Throws the 400 of the first thing that does not fit the schema; a secret that is not there is the empty text. */
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

/** A copy in which every text that the plugin gives a meaning is what `replace` gives for it, see `mapTexts`. */
export const mapConfig = (
  definition: Configurable,
  config: unknown,
  replace: (text: KindedText) => unknown,
): unknown => mapTexts(definition.config, config, replace);

function openSecret(value: unknown, { secrets, openSealed }: SecretContext): unknown {
  if (typeof value !== "object" || value === null) return value;
  const stored = value as { readonly sealed?: unknown; readonly $secret?: unknown };
  if (typeof stored.sealed === "string") return openSealed(stored.sealed);
  for (const secret of secrets.values())
    if (secret.name === stored.$secret) return openSealed(secret.sealed_value);
  // A rule of its own says which one is missing.
  return typeof stored.$secret === "string" ? "-" : value;
}
