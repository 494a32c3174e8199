// What the parts of a configuration of Kong know of each other, and what they all look like; knows no kind of object.
import type { Members } from "../members.ts";
import type { Output } from "../output.ts";
import type { ScopedPlugin } from "./plugins.ts";

/** What the parts know of each other. */
export interface KongContext {
  readonly output: Output;
  readonly root: Members;
  readonly format: string;
  /** Whether passwords in the file are hashed already. */
  readonly isHashed: boolean;
  /** Ids of objects by their id or name in Kong: `services web`. */
  readonly ids: Map<string, string>;
  /** PEM of certificate authorities by their id in Kong. */
  readonly authorities: ReadonlyMap<string, string>;
  /** Plugins that stand inside of other objects, found on the way. */
  readonly plugins: ScopedPlugin[];
  /** Names of ACL groups here, by theirs in Kong. */
  readonly groups: Map<string, string>;
  /** Consumers that are in a group. */
  readonly grouped: string[];
  /** Algorithms of the credentials for tokens. */
  readonly jwtAlgorithms: Set<string>;
}

/** `name`, `{name: ...}` or `{id: ...}`, as a word; null when there is none. */
export function referenceOf(members: Members, name: string): string | null {
  const value = members.raw(name);
  if (value === null || typeof value === "string") return value;
  const object = members.object(name);
  return object?.text("id") ?? object?.text("name") ?? object?.text("username") ?? null;
}

/** Words by which the file may refer to an object. */
export function remember(
  { ids }: KongContext,
  { kind, words, id }: { kind: string; words: readonly (string | null)[]; id: string },
): void {
  for (const word of words) if (word !== null) ids.set(`${kind} ${word}`, id);
}

/** Fields that all objects have. Kong counts times in seconds. */
export function commonOf(members: Members): Record<string, unknown> {
  const at = (name: string) => {
    const seconds = members.number(name);
    return seconds === null ? {} : { [name]: new Date(seconds * 1000).toISOString() };
  };
  members.leaveOut("ws_id", "there are no workspaces");
  return { tags: members.texts("tags"), ...at("created_at"), ...at("updated_at") };
}

/** A group as it is written here; two of Kong never become one. */
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

/** `{vault://...}` stands for a value that is not in the file. */
export const isVaultReference = (text: string): boolean => /^\{vault:\/\/.*\}$/.test(text);
