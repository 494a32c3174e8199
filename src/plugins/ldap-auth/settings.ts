// The settings of ldap-auth: schema, validation, and insertion of names; knows no connection.
import { Type as t } from "@sinclair/typebox";
import { authenticationFields } from "../../pdk/authentication.ts";
import { destination } from "../../pdk/destination.ts";
import {
  config,
  flag,
  integer,
  milliseconds,
  nullable,
  oneOf,
  secret,
  server,
} from "../../pdk/fields.ts";

const text = (description: string) => t.String({ minLength: 1, maxLength: 1024, description });

export const schema = config({
  url: destination(
    server({
      maxLength: 512,
      pattern: "^ldaps?://[^/?#@]+/?$",
      errorMessage: "must be ldap://host:port or ldaps://host:port",
      description: "URL of the directory",
    }),
  ),
  bind_dn: text(
    "Bind name: of the client when it has ${username}, otherwise of an account that searches the client's entry",
  ),
  bind_password: t.Optional(
    secret({ description: "Password of that account; not used when bind_dn has ${username}" }),
  ),
  base_dn: nullable(text("Base of the user search; null: no search")),
  filter: t.String({
    default: "(uid=${username})",
    minLength: 1,
    maxLength: 1024,
    description: "Filter of the user search; exactly one entry must match",
  }),
  start_tls: destination(flag(false, "Encrypt a connection to ldap:// with StartTLS")),
  ca: destination(
    nullable(
      t.String({
        maxLength: 65_536,
        description: "Trusted CA certificates (PEM); null: the system's CAs",
      }),
    ),
  ),
  verify_certificate: destination(flag(true, "Verify the directory's certificate and host name")),
  group_base_dn: nullable(text("Base of the group search; null: no search")),
  group_filter: t.String({
    default: "(|(member=${dn})(uniqueMember=${dn})(memberUid=${username}))",
    minLength: 1,
    maxLength: 1024,
    description: "Filter of the group search; ${dn} is the name of the client's entry",
  }),
  group_attribute: t.String({
    default: "cn",
    pattern: "^[A-Za-z][A-Za-z0-9-]{0,127}$",
    errorMessage: "must be the name of an attribute",
    description: "Attribute with the name of a group",
  }),
  consumer_by: nullable(
    oneOf(["username", "custom_id"], {
      description:
        "Property of a consumer that equals the user name in lower case; null: no consumers",
    }),
  ),
  cache_ttl: integer(60, {
    minimum: 0,
    maximum: 86_400,
    description: "Seconds for which a correct password is cached; 0: not cached",
  }),
  timeout: milliseconds(5000, "Timeout of one authentication in milliseconds"),
  ...authenticationFields,
});

export type Config = (typeof schema)["static"];

const USERNAME = "${username}";
export const isDirect = ({ bind_dn }: Config): boolean => bind_dn.includes(USERNAME);

const asHex = (character: string) =>
  [...Buffer.from(character)].map((byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");

/**
 * Distinguished names (RFC 4514 section 2.4) and filters (RFC 4515 section 3) allow any byte in hexadecimal: special
 * characters are escaped so.
 */
const escapeValue = (value: string): string =>
  value.toWellFormed().replace(/[^A-Za-z0-9.@_\u0080-\u{10ffff}-]/gu, asHex);

/** Replaces `${name}` with the escaped values. */
export const fill = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(/\$\{([^}]*)\}/g, (_, name: string) =>
    Object.hasOwn(values, name) ? escapeValue(values[name] ?? "") : "",
  );

const unknownIn = (template: string, known: readonly string[]) =>
  [...template.matchAll(/\$\{([^}]*)\}/g)].some(([, name = ""]) => !known.includes(name));

/** In balanced parentheses. */
function isFilter(filter: string): boolean {
  let depth = 0;
  for (const character of filter.replace(/\$\{[^}]*\}/g, "")) {
    if (character === "(") depth++;
    else if (character === ")" && --depth < 0) return false;
  }
  return depth === 0 && filter.startsWith("(") && filter.endsWith(")");
}

/** All problems beyond the schema. */
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
    "needs an ldap:// URL: ldaps:// is encrypted already",
  );
  check(!unknownIn(own.bind_dn, ["username"]), "bind_dn", "may have no variable but ${username}");
  // The LDAP client reads a bare word as a SASL mechanism: EXTERNAL would need no password.
  check(
    /[=@\\]/.test(own.bind_dn.replaceAll(USERNAME, "")),
    "bind_dn",
    "must be a distinguished name, or name@domain",
  );
  if (!isDirect(own)) {
    check(own.base_dn !== null, "base_dn", "is required when bind_dn does not have ${username}");
    check(
      own.bind_password !== undefined,
      "bind_password",
      "is required for the account in bind_dn",
    );
    check(own.filter.includes(USERNAME), "filter", "must have ${username}");
  }
  check(isFilter(own.filter), "filter", "must be a filter in parentheses");
  check(!unknownIn(own.filter, ["username"]), "filter", "may have no variable but ${username}");
  check(isFilter(own.group_filter), "group_filter", "must be a filter in parentheses");
  check(
    !unknownIn(own.group_filter, ["username", "dn"]),
    "group_filter",
    "may have no variables but ${username} and ${dn}",
  );
  return found;
}
