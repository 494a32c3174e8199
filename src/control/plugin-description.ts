// The description of a plugin: its order and the schema of its configuration, for forms and docs; knows no plugin.
import { Value } from "@sinclair/typebox/value";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";

export interface PluginDescription {
  readonly name: string;
  readonly summary: string;
  /** Markdown. */
  readonly description: string;
  readonly group: string;
  readonly phases: readonly string[];
  readonly scopes: readonly string[];
  readonly order: number;
  /** What happens to a request when it fails; instances can override it. */
  readonly on_error: "open" | "closed";
  readonly allows_multiple: boolean;
  readonly needs_admin: boolean;
  /** Whether it is part of the gateway, or a file of `--plugins-dir`. */
  readonly source: "built_in" | "directory";
  /** SHA-256 of the code of a plugin from the directory; null: it is built in. */
  readonly hash: string | null;
  /** JSON Schema of `config`; `x-kind` is the kind of a text. */
  readonly schema: unknown;
  /** The default `config`, as far as there are defaults. */
  readonly defaults: unknown;
  readonly example: unknown;
}

export function describePlugin(
  definition: NonNullable<ReturnType<PluginCatalogue["get"]>>,
): PluginDescription {
  const { name, summary, description, group, phases, scopes, order, config, example } = definition;
  return {
    name,
    summary,
    description,
    group,
    phases,
    scopes,
    order,
    on_error: definition.onError,
    allows_multiple: definition.allowsMultiple ?? false,
    needs_admin: definition.needsAdmin ?? false,
    source: definition.code === undefined ? "built_in" : "directory",
    hash: definition.code?.hash ?? null,
    schema: config,
    defaults: Value.Default(config, {}),
    example,
  };
}
