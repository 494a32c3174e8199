// A consumer: a client identity of the proxied APIs; knows no credential.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineLargeResource } from "./resource.ts";
import { flag, type Identity, labels, nullable } from "./fields.ts";

/** It is sent upstream in a header field unchanged. */
const word = (description: string) =>
  t.String({
    minLength: 1,
    maxLength: 128,
    pattern: "^[\\x21-\\x7e](?:[\\x20-\\x7e]*[\\x21-\\x7e])?$",
    errorMessage: "must be printable ASCII without spaces at its ends",
    description,
  });

export const consumerInput = t.Object(
  {
    username: word("Unique name"),
    custom_id: nullable(word("Unique ID in another system"), "Unique ID in another system"),
    groups: t.Array(
      t.String({
        minLength: 1,
        maxLength: 128,
        pattern: "^[\\x21-\\x2b\\x2d-\\x7e]+$",
        errorMessage: "must be printable ASCII without spaces and commas",
      }),
      { default: [], maxItems: 100, description: "Groups, for acl and access-policy" },
    ),
    enabled: flag(true, "Whether its credentials are accepted"),
    ...labels,
  },
  { additionalProperties: false, title: "Consumer" },
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
