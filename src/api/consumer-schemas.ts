// Schemas of what the management API answers about consumers, credentials and plugins; used for the description only.
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
          description: "The first characters of a key, to tell it from others",
        }),
        previous_until: time("Until when the secret before the last rotation is accepted too"),
        last_used_at: time("To the minute after a crash; null: never"),
        secret: t.Optional(
          t.String({ description: "Only in the answer that makes it, and never again" }),
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
    description: "Secrets in `config` are left out; references to named secrets are shown",
  }),
  PluginInput: pluginInput,
  PluginSchema: t.Object(
    {
      name: t.String({ description: "Name of the plugin" }),
      summary: t.String({ description: "What it does, in one sentence" }),
      description: t.String({ description: "What it does, in Markdown" }),
      group: t.String({ description: "Kind of plugin" }),
      phases: texts("The moments of a request at which it runs"),
      scopes: texts("What instances can be attached to"),
      order: t.Integer({ description: "Place within a phase, higher first" }),
      on_error: t.String({ description: "open: a request goes on when it fails; closed: not" }),
      allows_multiple: t.Boolean({ description: "Whether one place may have several instances" }),
      needs_admin: t.Boolean({ description: "Whether only admins may write instances" }),
      schema: t.Unknown({
        description: "JSON Schema of `config`; `x-kind` says what a text is beyond it",
      }),
      defaults: t.Unknown({ description: "`config` when nothing is said" }),
      example: t.Unknown({ description: "A `config` that works" }),
    },
    { title: "Schema of a plugin" },
  ),
};
