// Reads lists with an address or network in each line; knows nothing of where they come from.
import type { Pace } from "../../pace.ts";
import { networkKey } from "../../pdk/net.ts";

/** Such a list would deny every client. */
const ALL: ReadonlySet<string> = new Set([networkKey("0.0.0.0/0"), networkKey("::/0")] as string[]);

/**
 * The networks of a list, each once, as `networkKey`. A comment begins with `#` or `;`; what follows the address is ignored. Throws an
 * Error with a message for the log when it has more than `max` networks, or when most lines are none.
 */
export async function readLines(
  body: Uint8Array,
  { max, pace }: { readonly max: number; readonly pace: Pace },
): Promise<ReadonlySet<string>> {
  // Removes a byte order mark.
  const text = new TextDecoder().decode(body);
  if (text.trim() === "") throw new Error("the list is empty");
  const keys = new Set<string>();
  let unknown = 0;
  for (let start = 0; start < text.length;) {
    const end = lineEnd(text, start);
    const word = firstWord(text.slice(start, Math.min(end, start + MAX_LINE)));
    start = end + 1;
    if (pace.isDue()) await pace.rest();
    if (word === "") continue;
    const key = networkKey(word);
    if (key === null || ALL.has(key)) unknown++;
    else keys.add(key);
    if (keys.size > max) throw new Error("the lists have more networks than max_entries");
  }
  if (unknown > keys.size) throw new Error("the response is no list of addresses and networks");
  return keys;
}

/** Longer lines are comments. */
const MAX_LINE = 512;

function lineEnd(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end < 0 ? text.length : end;
}

const firstWord = (line: string) =>
  line
    .replace(/[#;].*$/s, "")
    .trim()
    .split(/[\s,]/, 1)[0] ?? "";
