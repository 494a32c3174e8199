// Schemas of what the management API answers about sign-in, sessions and tokens; used for the description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { identity } from "../model/fields.ts";
import { signInInput } from "../model/sign-in.ts";
import { tokenInput } from "../model/token.ts";
import { roles } from "../model/user.ts";

const time = (description: string) => t.String({ format: "date-time", description });
const orNull = (schema: TSchema, description: string) =>
  t.Union([schema, t.Null()], { description });
const words = (of: readonly string[], description: string) =>
  t.Unsafe<string>({ type: "string", enum: [...of], description });
const fingerprint = t.String({ description: "First 8 hexadecimal digits of the SHA-256" });

export const accessSchemas: Readonly<Record<string, TSchema>> = {
  SignIn: signInInput,
  Me: t.Object(
    {
      authentication: words(["disabled", "enabled"], "Whether credentials are needed"),
      user: orNull(
        t.Object({
          id: t.String({ format: "uuid" }),
          email: t.String(),
          name: t.String(),
          role: words(roles, "Role of the user"),
        }),
        "The user; null for tokens, and while there are no users",
      ),
      role: words(roles, "What the caller may do"),
      method: words(["disabled", "session", "token"], "How the caller was recognised"),
      expires_at: orNull(time("When"), "When the session or token ends; null: never"),
    },
    { title: "Me" },
  ),
  SignedOut: t.Object({ logged_out: t.Literal(true) }, { title: "SignedOut" }),
  Session: t.Object(
    {
      id: t.String({ format: "uuid", description: "Id of the session, which is not the cookie" }),
      user_id: t.String({ format: "uuid", description: "Whose it is" }),
      email: t.String({ description: "E-mail address of the user" }),
      method: words(["password", "sso"], "How the user signed in"),
      created_at: time("When the user signed in"),
      expires_at: time("When it ends, used or not"),
      address: t.String({ description: "Address that the user signed in from" }),
      user_agent: t.String({ description: "What the browser said of itself" }),
      current: t.Boolean({ description: "Whether it is the one that asks" }),
    },
    { title: "Session" },
  ),
  Token: t.Composite(
    [
      t.Object(identity),
      tokenInput,
      t.Object({
        fingerprint,
        last_used_at: orNull(time("When"), "To the minute after a crash; null: never"),
        token: t.Optional(
          t.String({ description: "Only in the answer that creates it, and never again" }),
        ),
      }),
    ],
    { title: "Token" },
  ),
  TokenInput: tokenInput,
  AdminToken: t.Object(
    {
      token: t.String({ description: "Shown here and never again" }),
      fingerprint,
      created_at: time("When it was made"),
    },
    { title: "AdminToken" },
  ),
  AdminTokenStatus: t.Object(
    {
      exists: t.Boolean({ description: "Whether there is one" }),
      fingerprint: orNull(fingerprint, "Of the token that there is"),
      created_at: orNull(time("When"), "When it was made"),
      last_used_at: orNull(time("When"), "To the minute after a crash; null: never"),
    },
    { title: "AdminTokenStatus" },
  ),
};
