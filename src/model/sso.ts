// Settings of single sign-on with OpenID Connect; knows nothing of the protocol.
import { type Static, Type as t } from "@sinclair/typebox";
import { destination, storedSecret } from "./destination.ts";
import { flag, KEPT_THERE, listOf, nullable, oneOf } from "./fields.ts";
import { roles } from "./user.ts";

const url = (description: string) =>
  t.String({
    default: "",
    maxLength: 2048,
    pattern: "^(?:https?://[^\\s?#]+)?$",
    errorMessage: "must be an http:// or https:// address without query and fragment",
    description,
  });

const shared = {
  enabled: flag(false, "Whether users can sign in with it"),
  issuer: destination(
    url("Issuer URL of the identity provider; discovery adds /.well-known/openid-configuration"),
  ),
  client_id: t.String({ default: "", maxLength: 512, description: "Client ID at the provider" }),
  token_auth: oneOf(["basic", "post"], {
    default: "basic",
    description: "How the client secret is sent: client_secret_basic or client_secret_post",
  }),
  scopes: t.Array(
    t.String({ minLength: 1, maxLength: 128, pattern: "^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$" }),
    {
      default: ["openid", "email", "profile"],
      maxItems: 50,
      description: "Scopes to request; openid is always among them",
    },
  ),
  role_claim: t.String({
    default: "",
    maxLength: 256,
    description:
      "Claim of the ID token that holds the role or groups, dots for nested ones; empty: none",
  }),
  role_map: t.Record(
    t.String({ minLength: 1, maxLength: 256 }),
    oneOf(roles, { description: "Role" }),
    {
      default: {},
      description: "Role for each value of role_claim; of several, the highest",
    },
  ),
  default_role: nullable(
    oneOf(roles, { description: "Role" }),
    "Role of users without a match in role_map; null: sign-in is denied",
  ),
  allowed_domains: listOf(
    t.String({ minLength: 1, maxLength: 253 }),
    "Domains of e-mail addresses that may sign in; empty: any",
  ),
  auto_provision: flag(false, "Whether to create a user at the first sign-in"),
  button_label: t.String({
    default: "Single sign-on",
    maxLength: 64,
    description: "Text of the button",
  }),
};

const secretReference = t.Object(
  { $secret: t.String({ minLength: 1, maxLength: 128, description: "Name of a secret" }) },
  { additionalProperties: false },
);

/** What clients send. */
export const ssoInput = t.Object(
  {
    ...shared,
    client_secret: t.Optional(
      t.Union([t.String({ maxLength: 4096 }), secretReference, t.Null()], {
        writeOnly: true,
        description: `A text, or a reference to a secret; null: none (public client). ${KEPT_THERE}`,
      }),
    ),
  },
  { additionalProperties: false, title: "Sso" },
);

/** What is stored. */
export const ssoRecord = t.Object(
  {
    ...shared,
    client_secret: storedSecret(
      "client_secret",
      t.Union(
        [
          t.Object({ sealed: t.String() }, { additionalProperties: false }),
          secretReference,
          t.Null(),
        ],
        { default: null, description: "Encrypted, or a reference" },
      ),
    ),
  },
  { additionalProperties: false },
);

export type SsoInput = Static<typeof ssoInput>;
export type Sso = Readonly<Static<typeof ssoRecord>> & { readonly updated_at: string };
