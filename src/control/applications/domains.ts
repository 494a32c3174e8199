// Which names an authority that everybody trusts could vouch for; looks nothing up.
const PRIVATE_ENDS = ["localhost", "local", "lan", "internal", "home.arpa", "test"];

const isAddress = (name: string) => /^\d+(?:\.\d+){3}$/.test(name);

/** Whether the name can be that of somebody on the Internet, by its look. */
export function isPublicName(name: string): boolean {
  const plain = name.replace(/^\*\./, "").toLowerCase();
  if (!plain.includes(".") || isAddress(plain)) return false;
  return !PRIVATE_ENDS.some((end) => plain === end || plain.endsWith(`.${end}`));
}

/** Names that clients can ask for in a handshake: addresses are not among them (RFC 6066 section 3). */
export const presentable = (names: readonly string[]): string[] =>
  names.filter((name) => !isAddress(name));

/** RFC 6125 section 6.4.3: a wildcard stands for exactly one label. */
export function covers(names: readonly string[], name: string): boolean {
  return names.includes(name) || names.includes(name.replace(/^[^.*]+(?=\.)/, "*"));
}
