// Response schemas of consumers, credentials and plugins; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { consumerInput } from "../model/consumer.ts";
import { credentialInput, rotationInput } from "../model/credential.ts";
import { identity } from "../model/fields.ts";
import { pluginInput } from "../model/plugin.ts";

const identityObject = t.Object(identity);
const time = (description: string) =>
  t.Union([t.String({ format: "date-time" }), t.Null()], { description });
const texts = (description: string) => t.Array(t.String(), { description });

export const consumerSchemas: Readonly<Record<string, TSchema>> = {
  Consumer: t.Composite([identityObject, consumerInput], { title: "Consumer" }),
  ConsumerInput: consumerInput,
  Credential: t.Composite(
    [
      identityObject,
      t.Omit(credentialInput, ["secret"]),
      t.Object({
        prefix: t.Union([t.String(), t.Null()], {
          description: "The first characters of a key, to identify it",
        }),
        previous_until: time("Until when the secret from before the last rotation stays valid"),
        last_used_at: time("Last use, accurate to the minute after a crash; null: never"),
        secret: t.Optional(
          t.String({ description: "Shown once, in the response that creates it" }),
        ),
      }),
    ],
    { title: "Credential" },
  ),
  CredentialInput: credentialInput,
  ConsumerCredentialInput: t.Omit(credentialInput, ["consumer_id"], {
    title: "Credential of a consumer",
  }),
  Rotation: rotationInput,
  Plugin: t.Composite([identityObject, pluginInput], {
    title: "Plugin",
    description: "`config` without secrets, but with references to named secrets",
  }),
  PluginInput: pluginInput,
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
