// Lists in header fields and messages, whose length does not grow with them; knows no field.

/** A head of more than 8 KB is refused by many clients and proxies. */
const MOST = { items: 10, characters: 2000 } as const;

const cut = (text: string): string =>
  text.length > MOST.characters ? `${text.slice(0, MOST.characters - 3)}...` : text;

/** The first items, and `and 19990 more` where there are more than ten or they are long together. */
export function shortList(items: readonly string[]): string {
  let text = "";
  let shown = 0;
  for (const item of items.slice(0, MOST.items)) {
    const next = shown === 0 ? cut(item) : `${text}, ${item}`;
    if (next.length > MOST.characters) break;
    text = next;
    shown++;
  }
  const more = items.length - shown;
  return more === 0 ? text : `${text} and ${more} more`;
}
