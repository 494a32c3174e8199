// State shared by the converters of Kong's objects, and their common fields; knows no kind of object.
import type { Members } from "../members.ts";
import type { Output } from "../output.ts";
import type { ScopedPlugin } from "./plugins.ts";

export interface KongContext {
  readonly output: Output;
  readonly root: Members;
  readonly format: string;
  /** Whether passwords in the file are hashed. */
  readonly isHashed: boolean;
  /** Ids of objects by their id or name in Kong: `services web`. */
  readonly ids: Map<string, string>;
  /** PEM of CA certificates by their id in Kong. */
  readonly caCertificates: ReadonlyMap<string, string>;
  /** Plugins nested in other objects. */
  readonly plugins: ScopedPlugin[];
  /** Imported names of ACL groups by their name in Kong. */
  readonly groups: Map<string, string>;
  /** Ids of consumers in a consumer group. */
  readonly grouped: string[];
  /** Algorithms of the JWT credentials. */
  readonly jwtAlgorithms: Set<string>;
}

/** The name or id in `name`, `{name: ...}` or `{id: ...}`; null when absent. */
export function referenceOf(members: Members, name: string): string | null {
  const value = members.raw(name);
  if (value === null || typeof value === "string") return value;
  const object = members.object(name);
  return object?.text("id") ?? object?.text("name") ?? object?.text("username") ?? null;
}

/** Stores the id of an object under the names and ids by which the file may reference it. */
export function remember(
  { ids }: KongContext,
  { kind, words, id }: { kind: string; words: readonly (string | null)[]; id: string },
): void {
  for (const word of words) if (word !== null) ids.set(`${kind} ${word}`, id);
}

/** Fields of all objects. Times of Kong are in seconds. */
export function commonOf(members: Members): Record<string, unknown> {
  const at = (name: string) => {
    const seconds = members.number(name);
    return seconds === null ? {} : { [name]: new Date(seconds * 1000).toISOString() };
  };
  members.omit("ws_id", "the gateway has no workspaces");
  return { tags: members.texts("tags"), ...at("created_at"), ...at("updated_at") };
}

/** The valid name of a group; two groups never get the same one. */
export function groupName({ groups }: KongContext, group: string): string {
  const known = groups.get(group);
  if (known !== undefined) return known;
  const clean = group.trim().replaceAll(/[\s,]+/g, "-");
  const taken = new Set(groups.values());
  let name = clean;
  for (let count = 2; taken.has(name); count++) name = `${clean}-${count}`;
  groups.set(group, name);
  return name;
}

/** `{vault://...}` references a value that is not in the file. */
export const isVaultReference = (text: string): boolean => /^\{vault:\/\/.*\}$/.test(text);
