// Maps verified claims of the provider to a user and role; knows no protocol and stores nothing.
import { Value } from "@sinclair/typebox/value";
import { decode } from "../../model/decode.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import type { Sso } from "../../model/sso.ts";
import { emailKey, type Role, roles, type User, userRecord } from "../../model/user.ts";
import { isDocument } from "../../control/body.ts";
import type { Claims } from "../../oidc/verification.ts";
import { SsoError } from "./failure.ts";

/** The writable fields of a user. */
export type UserFields = Omit<User, "id" | "created_at" | "updated_at">;

/** The user after the sign-in. */
export type Account =
  | { readonly kind: "existing"; readonly user: User }
  | { readonly kind: "new"; readonly fields: UserFields };

/**
 * Finds the user by the linked identity, else by the verified address, which links it, else creates one. Throws an SsoError
 * when sign-in is denied. The role of an existing user follows the claim only when the map holds it.
 */
export function chooseAccount(config: GatewayConfig, claims: Claims): Account {
  const { sso, users } = config;
  if (users.size === 0) throw new SsoError("setup_required", "no user exists yet");
  const all = [...users.values()];
  const linked = all.find((user) => isLinkedTo(user, sso.issuer, claims.sub)) ?? null;
  // A linked user needs no address, but a verified one from the provider wins.
  const isVerified = typeof claims["email"] === "string" && claims["email_verified"] === true;
  const email = linked === null || isVerified ? verifiedEmail(claims) : linked.email;
  requireDomain(sso, email);
  if (linked === null) requirePlainName(email);
  const user = linked ?? all.find((other) => emailKey(other.email) === emailKey(email));
  if (user === undefined) return { kind: "new", fields: newUser(sso, claims, email) };
  if (!user.enabled) throw new SsoError("user_disabled", `the user ${user.email} is disabled`);
  return { kind: "existing", user: bringUpToDate(user, sso, claims) };
}

const isLinkedTo = ({ sso }: User, issuer: string, subject: string) =>
  sso !== null && sso.issuer === issuer && sso.subject === subject;

function bringUpToDate(user: User, sso: Sso, claims: Claims): User {
  const role = mappedRole(sso, claims) ?? user.role;
  if (isLinkedTo(user, sso.issuer, claims.sub))
    return role === user.role ? user : { ...user, role };
  // The provider may reassign an address to another person, who must not inherit the user.
  if (user.sso?.issuer === sso.issuer)
    throw new SsoError(
      "identity_conflict",
      `the user ${user.email} is linked to another subject of the provider`,
    );
  return { ...user, role, sso: { issuer: sso.issuer, subject: claims.sub } };
}

function newUser(sso: Sso, claims: Claims, email: string): UserFields {
  if (!sso.auto_provision) throw new SsoError("no_account", `there is no user ${email}`);
  const role = mappedRole(sso, claims) ?? sso.default_role;
  if (role === null)
    throw new SsoError("unknown_role", `no role follows from the claims of ${email}`);
  const identity = { issuer: sso.issuer, subject: claims.sub };
  return decode(userRecord, { email, name: nameOf(claims, email), role, sso: identity });
}

function verifiedEmail(claims: Claims): string {
  const { email, email_verified } = claims;
  if (typeof email !== "string" || email === "")
    throw new SsoError("email_missing", "there is no e-mail address among the claims");
  // An unverified address may belong to another person. The standard requires the boolean true, not a word.
  if (email_verified !== true)
    throw new SsoError("email_unverified", "email_verified is not true among the claims");
  if (!Value.Check(userRecord.properties.email, email))
    throw new SsoError("email_missing", "the e-mail address among the claims cannot be used");
  return email;
}

/**
 * Providers and users confuse letters with different bytes: such an address neither finds a user nor creates one that looks
 * like another.
 */
function requirePlainName(email: string): void {
  if (/[^\x21-\x7e]/.test(email.slice(0, email.lastIndexOf("@"))))
    throw new SsoError(
      "email_missing",
      "the name in the e-mail address has letters outside of ASCII, which cannot be used to find or create a user",
    );
}

function requireDomain({ allowed_domains }: Sso, email: string): void {
  if (allowed_domains.length === 0) return;
  const domain = email.slice(email.lastIndexOf("@") + 1);
  if (!allowed_domains.some((allowed) => emailKey(allowed) === emailKey(domain)))
    throw new SsoError("domain_not_allowed", `the domain of ${email} is not allowed`);
}

function nameOf(claims: Claims, email: string): string {
  const candidates = [claims["name"], claims["preferred_username"], email];
  const names = candidates
    .filter((name) => typeof name === "string")
    .map((name) => name.replace(/[\u0000-\u001f\u007f]/g, " ").trim());
  return [...(names.find((name) => name !== "") ?? email)].slice(0, 64).join("");
}

/** The highest role that the map has for the values of the claim; null when it has none. */
function mappedRole({ role_claim, role_map }: Sso, claims: Claims): Role | null {
  if (role_claim === "") return null;
  const value = claimAt(claims, role_claim);
  const values = (Array.isArray(value) ? value : [value]).filter(
    (item) => typeof item === "string",
  );
  const found = values
    .filter((item) => Object.hasOwn(role_map, item))
    .map((item) => roles.indexOf(role_map[item] as Role));
  return roles[Math.max(-1, ...found)] ?? null;
}

/** Names of claims may hold dots themselves, so the whole name goes first. */
export function claimAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: unknown = claims;
  for (const part of path.split(".")) {
    if (!isDocument(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}
