// The body of a sign-in; knows nothing of how it is checked.
import { Type as t } from "@sinclair/typebox";

export const signInInput = t.Object(
  {
    email: t.String({ minLength: 1, maxLength: 254, description: "E-mail address of the user" }),
    password: t.String({ minLength: 1, maxLength: 1024, description: "Password of the user" }),
    totp: t.Optional(
      t.String({
        maxLength: 64,
        description:
          "Code of the authenticator app or a recovery code, when the response asks for it",
      }),
    ),
  },
  { additionalProperties: false, title: "SignIn" },
);
