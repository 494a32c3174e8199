// Users: validates and hashes passwords before the change begins, and never shows hashes; knows no HTTP.
import { hashPassword } from "../crypto/password.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { emailKey, type User, userInput } from "../model/user.ts";
import { type Document, isDocument } from "../control/body.ts";
import type { Changes } from "../control/change.ts";
import type { QueryEntry } from "../control/list-filter.ts";
import { labelOf } from "../control/reference.ts";
import { requireConditions, tagOf } from "../control/representation.ts";
import {
  type Read,
  type Removed,
  Resource,
  type ResourceKind,
  type WriteOptions,
  type Written,
} from "../control/resource.ts";
import { checkPassword } from "./password.ts";
import type { SecondFactors } from "./totp.ts";

/** A user in responses. */
export type UserView = Omit<User, "password_hash" | "sso"> & {
  readonly has_password: boolean;
  readonly totp_enabled: boolean;
  readonly sso_linked: boolean;
};

/** A password that was hashed already, and what it takes the place of. */
export interface PasswordReplacement {
  readonly hash: string;
  /** The hash that the caller has looked at; absent: whatever is there. */
  readonly instead?: string | null;
}

/** The user with this id or, whatever the case of A to Z, this e-mail address; null when there is none. */
export function findUser(users: ReadonlyMap<string, User>, key: string): User | null {
  const wanted = emailKey(key);
  // A display name is not unique and must not stand in for either.
  if (!wanted.includes("@")) return users.get(wanted) ?? null;
  for (const user of users.values()) if (emailKey(user.email) === wanted) return user;
  return null;
}

export class Users {
  readonly #changes: Changes;
  readonly #secondFactors: SecondFactors;
  readonly #resource: Resource<"users", UserView>;

  constructor(changes: Changes, secondFactors: SecondFactors) {
    this.#changes = changes;
    this.#secondFactors = secondFactors;
    this.#resource = new Resource(changes, this.#kind());
  }

  list(query: readonly QueryEntry[]): Read<readonly UserView[]> {
    return this.#resource.list(query);
  }

  get(key: string): Read<UserView> {
    return this.#resource.get(key);
  }

  async create(body: unknown, options: WriteOptions): Promise<Written<UserView>> {
    return await this.#resource.create(await hashed(body, null), options);
  }

  async replace(key: string, body: unknown, options: WriteOptions): Promise<Written<UserView>> {
    return await this.#resource.replace(key, await hashed(body, this.#find(key)), options);
  }

  async patch(key: string, patch: unknown, options: WriteOptions): Promise<Written<UserView>> {
    return await this.#resource.patch(key, await hashed(patch, this.#find(key)), options);
  }

  remove(key: string, options: WriteOptions & { readonly cascade: boolean }): Promise<Removed> {
    return this.#resource.remove(key, options);
  }

  /** Replaces a hash by another one; throws a 409 when it has changed meanwhile. */
  async replaceHash(
    id: string,
    { hash, instead }: PasswordReplacement,
    options: WriteOptions,
  ): Promise<Written<UserView>> {
    const { value, ...written } = await this.#changes.run({
      ...options,
      mutate: (draft) => {
        const old = draft.config.users.get(id);
        if (old === undefined) throw missing(id);
        requireConditions(options.conditions, old);
        if (instead !== undefined && old.password_hash !== instead)
          throw new ApiError(409, "the password was changed by another request meanwhile");
        const user = { ...old, password_hash: hash, updated_at: draft.stamp() };
        draft.put("users", user);
        draft.setPath(id, "");
        draft.summary = `change the password of ${labelOf(draft.config, { collection: "users", id })}`;
        return { view: this.#viewer()(user), tag: tagOf(user) };
      },
    });
    return { ...value, ...written };
  }

  #find(key: string): User | null {
    return findUser(this.#changes.config.users, key);
  }

  #viewer(): (user: User) => UserView {
    const withSecondFactor = this.#secondFactors.userIds();
    return ({ password_hash, sso, ...user }) => ({
      ...user,
      has_password: password_hash !== null,
      totp_enabled: withSecondFactor.has(user.id),
      sso_linked: sso !== null,
    });
  }

  #kind(): ResourceKind<"users", UserView> {
    return {
      collection: "users",
      find: findUser,
      decode: (document, draft, old) => {
        const { password_hash: given, ...rest } = document as Document;
        const { password: _, ...fields } = decode(userInput, rest);
        const hash = typeof given === "string" ? given : (old?.password_hash ?? null);
        // Otherwise no user could sign in to set a password.
        if (hash === null && draft.base.users.size === 0 && !draft.config.sso.enabled)
          throw invalid("password", "is required for the first user");
        return { fields: { ...fields, password_hash: hash, sso: old?.sso ?? null } };
      },
      sendable: ({ password_hash: _, sso: _sso, ...user }) => user,
      viewer: () => this.#viewer(),
    };
  }
}

const missing = (key: string) => new ApiError(404, `user "${key}" does not exist`);

/** The document with the hash instead of the password, if it holds one. */
async function hashed(body: unknown, old: User | null): Promise<unknown> {
  if (!isDocument(body)) return body;
  if ("password_hash" in body) throw invalid("password_hash", "is not a known field");
  if (!("password" in body)) return body;
  const { password, ...rest } = body;
  checkPassword(password, [rest["email"], rest["name"], old?.email, old?.name]);
  return { ...rest, password_hash: await hashPassword(password) };
}
