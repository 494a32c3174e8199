// The settings of ldap-auth: their schema, what is wrong with them beyond it, and texts with names in them; knows no connection.
import { Type as t } from "@sinclair/typebox";
import { authenticationFields } from "../../pdk/authentication.ts";
import { destination } from "../../pdk/destination.ts";
import { config, flag, integer, milliseconds, nullable, oneOf, secret } from "../../pdk/fields.ts";

const text = (description: string) => t.String({ minLength: 1, maxLength: 1024, description });

export const schema = config({
  url: destination(
    t.String({
      maxLength: 512,
      pattern: "^ldaps?://[^/?#@]+/?$",
      errorMessage: "must be ldap://host:port or ldaps://host:port",
      description: "Address of the directory",
    }),
  ),
  bind_dn: text(
    "Name with which one signs in at the directory: with ${username} in it that of the client, else that of an account that looks for the client's entry",
  ),
  bind_password: t.Optional(
    secret({ description: "Password of that account; not used when bind_dn holds ${username}" }),
  ),
  base_dn: nullable(text("Where entries of people are looked for; null: they are not")),
  filter: t.String({
    default: "(uid=${username})",
    minLength: 1,
    maxLength: 1024,
    description: "Which entry is the client's; exactly one must fit",
  }),
  start_tls: destination(
    flag(false, "Encrypt a connection to ldap:// before anything is said (StartTLS)"),
  ),
  ca: destination(
    nullable(
      t.String({
        maxLength: 65_536,
        description: "Certificates (PEM) that vouch for the directory's; null: those of the system",
      }),
    ),
  ),
  verify_certificate: destination(flag(true, "Insist on a certificate that is valid for the host")),
  group_base_dn: nullable(text("Where groups are looked for; null: they are not")),
  group_filter: t.String({
    default: "(|(member=${dn})(uniqueMember=${dn})(memberUid=${username}))",
    minLength: 1,
    maxLength: 1024,
    description: "Which groups are the client's; ${dn} is the name of its entry",
  }),
  group_attribute: t.String({
    default: "cn",
    pattern: "^[A-Za-z][A-Za-z0-9-]{0,127}$",
    errorMessage: "must be the name of an attribute",
    description: "Attribute that holds the name of a group",
  }),
  consumer_by: nullable(
    oneOf(["username", "custom_id"], {
      description: "What of a consumer is the user name, in lower case; null: nobody is a consumer",
    }),
  ),
  cache_ttl: integer(60, {
    minimum: 0,
    maximum: 86_400,
    description: "Seconds for which a password that was right is not checked again; 0: always is",
  }),
  timeout: milliseconds(5000, "Milliseconds for everything that is asked of the directory at once"),
  ...authenticationFields,
});

export type Config = (typeof schema)["static"];

const USERNAME = "${username}";
export const isDirect = ({ bind_dn }: Config): boolean => bind_dn.includes(USERNAME);

const asHex = (character: string) =>
  [...Buffer.from(character)].map((byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");

/**
 * As part of a distinguished name (RFC 4514 section 2.4) and of a filter (RFC 4515 section 3) any byte may be written in
 * hexadecimal: whatever could mean something is written so.
 */
export const escapeValue = (value: string): string =>
  value.toWellFormed().replace(/[^A-Za-z0-9.@_\u0080-\u{10ffff}-]/gu, asHex);

/** Puts values, which are escaped, in the place of `${name}`. */
export const fill = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(/\$\{([^}]*)\}/g, (_, name: string) =>
    Object.hasOwn(values, name) ? escapeValue(values[name] ?? "") : "",
  );

const unknownIn = (template: string, known: readonly string[]) =>
  [...template.matchAll(/\$\{([^}]*)\}/g)].some(([, name = ""]) => !known.includes(name));

/** In parentheses, which are all closed. */
function isFilter(filter: string): boolean {
  let depth = 0;
  for (const character of filter.replace(/\$\{[^}]*\}/g, "")) {
    if (character === "(") depth++;
    else if (character === ")" && --depth < 0) return false;
  }
  return depth === 0 && filter.startsWith("(") && filter.endsWith(")");
}

/** Everything wrong beyond the schema. */
export function problemsOf(own: Config): { path: string; message: string }[] {
  const found: { path: string; message: string }[] = [];
  const check = (isFine: boolean, path: string, message: string) => {
    if (!isFine) found.push({ path, message });
  };
  const url = URL.parse(own.url);
  check(url !== null && url.hostname !== "", "url", "must name a host");
  check(
    !own.start_tls || own.url.startsWith("ldap:"),
    "start_tls",
    "needs an address with ldap://: ldaps:// is encrypted already",
  );
  check(!unknownIn(own.bind_dn, ["username"]), "bind_dn", "knows no variable but ${username}");
  // The client for LDAP takes a bare word for a SASL mechanism, and so EXTERNAL for no password at all.
  check(
    /[=@\\]/.test(own.bind_dn.replaceAll(USERNAME, "")),
    "bind_dn",
    "must be a distinguished name, or name@domain",
  );
  if (!isDirect(own)) {
    check(own.base_dn !== null, "base_dn", "is needed when bind_dn does not hold ${username}");
    check(own.bind_password !== undefined, "bind_password", "is needed for the account in bind_dn");
    check(own.filter.includes(USERNAME), "filter", "must hold ${username}");
  }
  check(isFilter(own.filter), "filter", "must be a filter in parentheses");
  check(!unknownIn(own.filter, ["username"]), "filter", "knows no variable but ${username}");
  check(isFilter(own.group_filter), "group_filter", "must be a filter in parentheses");
  check(
    !unknownIn(own.group_filter, ["username", "dn"]),
    "group_filter",
    "knows no variables but ${username} and ${dn}",
  );
  return found;
}
