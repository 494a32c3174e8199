// A consumer: somebody or something that uses the proxied APIs; knows no credential.
import { type Static, Type as t } from "@sinclair/typebox";
import { flag, type Identity, labels, nullable } from "./fields.ts";

/** It becomes a header field as it is. */
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
    custom_id: nullable(word("Unique id in another system"), "Unique id in another system"),
    groups: t.Array(
      t.String({
        minLength: 1,
        maxLength: 128,
        pattern: "^[\\x21-\\x2b\\x2d-\\x7e]+$",
        errorMessage: "must be printable ASCII without spaces and commas",
      }),
      { default: [], maxItems: 100, description: "Groups, for acl and policies" },
    ),
    enabled: flag(true, "Whether its credentials are accepted"),
    ...labels,
  },
  { additionalProperties: false, title: "Consumer" },
);

export type ConsumerInput = Static<typeof consumerInput>;
export type Consumer = Readonly<ConsumerInput> & Identity;
