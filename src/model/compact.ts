// Objects without what is as their schema has it, for where there are very many of them; knows no schema.

/** The value of each member that an object does not set. */
export type Defaults = Readonly<Record<string, unknown>>;

/** The members that differ from the defaults. */
export function compact(object: object, defaults: Defaults): Record<string, unknown> {
  const written: Record<string, unknown> = {};
  const members = object as Readonly<Record<string, unknown>>;
  for (const name in members)
    if (!isSame(members[name], defaults[name])) written[name] = members[name];
  return written;
}

/** The object again. Members at their default are the same for all: they must not be changed in place. */
export const expand = (members: object, defaults: Defaults): object => ({
  ...defaults,
  ...members,
});

/** As deep as most defaults go: plain values, and lists and objects of them. */
function isSame(value: unknown, usual: unknown): boolean {
  if (value === usual) return true;
  if (typeof value !== "object" || typeof usual !== "object") return false;
  if (value === null || usual === null) return false;
  if (Array.isArray(value))
    return (
      Array.isArray(usual) &&
      value.length === usual.length &&
      value.every((item, index) => item === usual[index])
    );
  const [own, others] = [value, usual] as readonly Readonly<Record<string, unknown>>[];
  for (const name in own) if (own[name] !== others?.[name]) return false;
  for (const name in others) if (!(name in value)) return false;
  return !Array.isArray(usual);
}
