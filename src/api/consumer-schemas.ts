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
      schema: t.Unknown({
        description: "JSON Schema of `config`; `x-kind` is the kind of a text",
      }),
      defaults: t.Unknown({ description: "Default `config`" }),
      example: t.Unknown({ description: "Example of a valid `config`" }),
    },
    { title: "Schema of a plugin" },
  ),
};
