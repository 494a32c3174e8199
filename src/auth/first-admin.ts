// The first user, whom the start of a gateway without users creates; knows neither flags nor files.
import { hashPassword } from "../crypto/password.ts";
import { decode } from "../model/decode.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { type User, userInput } from "../model/user.ts";
import type { Changes } from "../control/change.ts";
import { local } from "../control/principal.ts";
import { checkPassword, createPassword } from "./password.ts";

export interface FirstAdmin {
  readonly user: User;
  /** The generated password; null when it was given. */
  readonly password: string | null;
}

const NAME = "Admin";

/** Whether a first user is needed: with single sign-on, users come from the identity provider. */
export const lacksAdmin = ({ users, sso }: GatewayConfig): boolean =>
  users.size === 0 && !sso.enabled;

/** `password`: null generates one. `at`: ISO 8601. Throws an ApiError with the field that is wrong. */
export async function makeFirstAdmin(
  { email, password }: { readonly email: string; readonly password: string | null },
  at: string,
): Promise<FirstAdmin> {
  const { password: _, ...fields } = decode(userInput, { email, name: NAME, role: "admin" });
  if (password !== null) checkPassword(password, [email, NAME]);
  const chosen = password ?? createPassword();
  const password_hash = await hashPassword(chosen);
  const stamps = { created_at: at, updated_at: at };
  return {
    user: { id: Bun.randomUUIDv7(), ...fields, password_hash, sso: null, ...stamps },
    password: password === null ? chosen : null,
  };
}

/** Adds the user to a stored configuration, unless a user exists meanwhile. */
export async function storeFirstAdmin(changes: Changes, { user }: FirstAdmin): Promise<void> {
  await changes.run({
    by: local,
    dryRun: false,
    mutate: (draft) => {
      draft.put("users", user);
      draft.setPath(user.id, "");
      draft.summary = `create the first admin ${user.email}`;
    },
  });
}
