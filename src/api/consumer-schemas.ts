// Response schemas of consumers, credentials and plugins; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { credentialInput, rotationInput } from "../model/credential.ts";

const texts = (description: string) => t.Array(t.String(), { description });

export const consumerSchemas: Readonly<Record<string, TSchema>> = {
  ConsumerCredentialInput: t.Omit(credentialInput, ["consumer_id"], {
    title: "Credential of a consumer",
  }),
  Rotation: rotationInput,
  PluginSchema: t.Object(
    {
      name: t.String({ description: "Name of the plugin" }),
      summary: t.String({ description: "What it does, in one sentence" }),
      description: t.String({ description: "What it does, in Markdown" }),
      group: t.String({ description: "Category" }),
      phases: texts("Phases of a request in which it runs"),
      scopes: texts("Scopes of instances"),
      order: t.Integer({ description: "Priority within a phase, higher runs first" }),
      on_error: t.String({
        description:
          "open: the request continues when the plugin fails; closed: the gateway rejects it",
      }),
      allows_multiple: t.Boolean({ description: "Whether a scope may have several instances" }),
      needs_admin: t.Boolean({ description: "Whether only admins may write instances" }),
      source: t.Union([t.Literal("built_in"), t.Literal("directory")], {
        description: "Part of the gateway, or a file of `--plugins-dir`",
      }),
      hash: t.Union([t.String(), t.Null()], {
        description: "SHA-256 of the code of a plugin from the directory; null: it is built in",
      }),
      schema: t.Unknown({
        description: "JSON Schema of `config`; `x-kind` is the kind of a text",
      }),
      defaults: t.Unknown({ description: "Default `config`" }),
      example: t.Unknown({ description: "Example of a valid `config`" }),
    },
    { title: "Schema of a plugin" },
  ),
  PluginDirectory: t.Object(
    {
      directory: t.Union([t.String(), t.Null()], {
        description:
          "`--plugins-dir`, or else `plugins_directory` of the settings; null: all plugins are built in",
      }),
      source: t.Union([t.Literal("flag"), t.Literal("setting")], {
        description: "`flag`: `--plugins-dir`, which precedes the setting",
      }),
      reloads: t.Integer({ description: "How often code was replaced since the start" }),
      reloads_since_replacement: t.Integer({
        description:
          "The same since the workers were replaced; they are at `limits.max_plugin_reloads`",
      }),
      worker_replacements: t.Integer({
        description: "How often all workers were replaced because of reloads",
      }),
      plugins: t.Array(
        t.Object({
          name: t.String({ description: "Name of the plugin" }),
          file: t.String({ description: "Relative to the directory" }),
          state: t.Union(
            (["loaded", "refused", "disabled", "removed"] as const).map((word) => t.Literal(word)),
            {
              description:
                "refused: never loaded; disabled: it has blocked workers; removed: served although its file is gone",
            },
          ),
          hash: t.Union([t.String(), t.Null()], {
            description: "SHA-256 of the code that is served; null: none is",
          }),
          loaded_at: t.Union([t.String({ format: "date-time" }), t.Null()], {
            description: "When that code was loaded; null: never",
          }),
          reloads: t.Integer({ description: "How often its code was replaced since the start" }),
          blocked: t.Integer({
            description: "Workers that were replaced because they hung in that code",
          }),
          problem: t.Union(
            [
              t.Object({
                phase: t.String({
                  description:
                    "`read`, `bundle`, `import`, `definition`, `create`, `serve` or `run`",
                }),
                message: t.String(),
                file: t.Union([t.String(), t.Null()]),
                line: t.Union([t.Integer(), t.Null()], { description: "From 1" }),
              }),
              t.Null(),
            ],
            { description: "Why the file is not served as it is; null: it is" },
          ),
        }),
      ),
      problems: t.Array(t.String(), { description: "About the directory as a whole" }),
    },
    { title: "Plugins of the directory" },
  ),
};
