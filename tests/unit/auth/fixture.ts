// Users and callers for tests of what users may do.
import type { Principal } from "../../../src/control/principal.ts";
import type { Role, User } from "../../../src/model/user.ts";
import { at, configOf, controlPlane, options } from "../control/fixture.ts";

export const PASSWORD = "correct horse battery";

/** The hash of PASSWORD, computed once: hashing takes longer than most tests. */
const HASH = await Bun.password.hash(PASSWORD, {
  algorithm: "argon2id",
  memoryCost: 8,
  timeCost: 1,
});

export const userOf = (name: string, role: Role, fields: Partial<User> = {}): User => ({
  id: Bun.randomUUIDv5(name, "dns"),
  email: `${name}@a.example`,
  name,
  role,
  enabled: true,
  tags: [],
  description: "",
  password_hash: HASH,
  sso: null,
  created_at: at,
  updated_at: at,
  ...fields,
});

type Control = ReturnType<typeof controlPlane>["control"];

/** Authenticates a caller at a control plane. */
export type Caller = (control: Control) => Promise<Principal>;

const nothing = { authorization: null, adminToken: null, cookie: null, accessToken: null };
const ADDRESS = "127.0.0.1";

/** A user in a session. */
export const signedIn =
  (user: User): Caller =>
  async ({ changes, sessions, auth }) => {
    const visit = {
      method: "password",
      address: ADDRESS,
      userAgent: "test",
      isSecure: false,
    } as const;
    const { cookie } = await changes.record(() => sessions.create(user.id, visit));
    const credentials = { ...nothing, cookie: `sluice_session_test=${cookie}` };
    return recognised(auth.authenticator.authenticate(credentials, ADDRESS));
  };

/** An automation token of a role. */
export const withToken =
  (role: Role): Caller =>
  async ({ auth }) => {
    const { view } = await auth.tokens.create({ name: `a ${role}`, role }, options);
    const { token } = view as unknown as { token: string };
    return recognised(auth.authenticator.authenticate({ ...nothing, adminToken: token }, ADDRESS));
  };

function recognised(principal: Principal | null): Principal {
  if (principal === null) throw new Error("nobody was recognised");
  return principal;
}

/** A control plane with these users. */
export function withUsers(users: readonly User[], now?: () => number) {
  const config = { ...configOf({}), users: new Map(users.map((user) => [user.id, user])) };
  return controlPlane(config, now);
}

export { options };
