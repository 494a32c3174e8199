// A consumer: a client identity of the proxied APIs; knows no credential.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineLargeResource } from "./resource.ts";
import { type FieldForm, flag, type Identity, labels, nullable } from "./fields.ts";

/** It is sent upstream in a header field unchanged. */
const word = (description: string, form: FieldForm = {}) =>
  t.String({
    minLength: 1,
    maxLength: 128,
    pattern: "^[\\x21-\\x7e](?:[\\x20-\\x7e]*[\\x21-\\x7e])?$",
    errorMessage: "must be printable ASCII without spaces at its ends",
    description,
    form,
  });

export const consumerInput = t.Object(
  {
    username: word("Unique name", {
      help: "Identifies the consumer in logs and in headers to targets",
      example: "alice",
    }),
    custom_id: nullable(word("Unique ID in another system"), "Unique ID in another system", {
      title: "Custom ID",
      help: "Its id in another system, such as a customer number",
      example: "C-1042",
    }),
    groups: t.Array(
      t.String({
        minLength: 1,
        maxLength: 128,
        pattern: "^[\\x21-\\x2b\\x2d-\\x7e]+$",
        errorMessage: "must be printable ASCII without spaces and commas",
      }),
      {
        default: [],
        maxItems: 100,
        description: "Groups, for acl and access-policy",
        form: {
          help: "Groups that rules refer to: the plugin acl allows or denies groups",
          example: "staff",
        },
      },
    ),
    enabled: flag(true, "Whether its credentials are accepted", {
      help: "Off: the gateway rejects its credentials",
    }),
    ...labels,
  },
  {
    additionalProperties: false,
    title: "Consumer",
    form: { groups: [{ id: "main", title: "Consumer" }] } satisfies FieldForm,
  },
);

export type ConsumerInput = Static<typeof consumerInput>;
export type Consumer = Readonly<ConsumerInput> & Identity;

export const usernameOf = ({ username }: Consumer): string => username;
export const customIdOf = ({ custom_id: customId }: Consumer): string | null => customId;

export const consumers = defineLargeResource<Consumer>(
  {
    word: "consumer",
    input: consumerInput,
    normalize: (consumer: ConsumerInput) => ({
      ...consumer,
      groups: [...new Set(consumer.groups)],
    }),
    nameField: "username",
    nameWord: "username",
    columns: {
      username: { of: usernameOf, isUnique: true },
      custom_id: { of: customIdOf, isUnique: true, isNullable: true },
    },
    api: { tag: "Consumers", schema: "Consumer", takesLimit: true },
  },
  { indexes: [usernameOf, customIdOf] },
);
