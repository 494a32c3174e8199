// Which names a public CA could issue a certificate for; sends no DNS query.
import { isAddress, isWithin, PRIVATE_NAMES } from "../model/local-ca.ts";

/** Whether the name can be a public one, by its form. */
export function isPublicName(name: string): boolean {
  const plain = name.replace(/^\*\./, "").toLowerCase();
  if (!plain.includes(".") || isAddress(plain)) return false;
  return !isWithin(plain, PRIVATE_NAMES);
}

/** Names that clients can send in a handshake, which excludes addresses (RFC 6066 section 3). */
export const presentable = (names: readonly string[]): string[] =>
  names.filter((name) => !isAddress(name));

/** RFC 6125 section 6.4.3: a wildcard matches exactly one label. */
export function covers(names: readonly string[], name: string): boolean {
  return names.includes(name) || names.includes(name.replace(/^[^.*]+(?=\.)/, "*"));
}
