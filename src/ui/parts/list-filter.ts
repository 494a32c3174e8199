// Filters rows by words, tags and states; knows no resource.
import { isDocument } from "../api/merge-patch.ts";

/** The searchable text of an object, in lower case. */
export function haystackOf(value: unknown): string {
  const words: string[] = [];
  const collect = (part: unknown): void => {
    if (typeof part === "string") words.push(part);
    else if (typeof part === "number") words.push(String(part));
    else if (Array.isArray(part)) for (const item of part) collect(item);
    else if (isDocument(part)) for (const item of Object.values(part)) collect(item);
  };
  if (!isDocument(value)) return "";
  for (const field of SEARCHED) collect(value[field]);
  return words.join(" ").toLowerCase();
}

const SEARCHED = [
  ...["id", "name", "label", "username", "custom_id", "email", "description", "tags"],
  ...[
    "host",
    "port",
    "hosts",
    "domains",
    "paths",
    "grpc_methods",
    "targets",
    "path",
    "upstream",
    "address",
  ],
  ...["listen_port", "type", "groups", "protocol"],
] as const;

/** Whether every word of the query occurs. */
export function hasWords(haystack: string, query: string): boolean {
  const words = query.toLowerCase().split(/\s+/);
  return words.every((word) => haystack.includes(word));
}

export function tagsOf(row: object): readonly string[] {
  const tags: unknown = "tags" in row ? row.tags : null;
  return Array.isArray(tags) ? (tags as readonly string[]) : [];
}

/** Every tag that some row has, sorted. */
export const allTags = (rows: readonly object[]): string[] =>
  [...new Set(rows.flatMap((row) => tagsOf(row)))].sort((a, b) => a.localeCompare(b));
