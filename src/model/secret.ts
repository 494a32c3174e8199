// A named secret value that other objects refer to as {"$secret": "name"}; knows nothing of encryption.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource } from "./resource.ts";
import { stays } from "./destination.ts";
import { type Identity, KEPT, labels, name } from "./fields.ts";

/** What clients send. */
export const secretInput = t.Object(
  {
    name: name("Unique name"),
    value: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 65_536,
        writeOnly: true,
        description: `Required on creation. ${KEPT}`,
      }),
    ),
    ...labels,
  },
  { additionalProperties: false, title: "Secret" },
);

/** What is stored. */
const secretRecord = t.Object(
  {
    name: name("Unique name"),
    sealed_value: stays(
      "only what refers to it sends it anywhere",
      t.String({ description: "The value, encrypted" }),
    ),
    ...labels,
  },
  { additionalProperties: false },
);

export type SecretInput = Static<typeof secretInput>;
export type Secret = Readonly<Static<typeof secretRecord>> & Identity;

export const secrets = defineResource<Secret>({
  word: "secret",
  input: secretInput,
  record: secretRecord,
  nameField: "name",
  api: { tag: "Secrets", schema: "Secret", read: "admin", write: "admin" },
});
