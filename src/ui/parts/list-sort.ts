// Sorts rows by a column; knows no resource.

/** What a cell sorts by; null: no value, always last. */
export type SortKey = string | number | null;

export interface SortColumn<T> {
  readonly title: string;
  readonly sortBy: (row: T) => SortKey;
}

/** Numbers in names sort by value: `web-2` before `web-10`. */
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** `sort`: the title of a column, after `-` for descending; without one, the order of the API. */
export function sortRows<T>(
  rows: readonly T[],
  sort: string,
  columns: readonly SortColumn<T>[],
): readonly T[] {
  const column = columns.find(({ title }) => title === titleOf(sort));
  if (column === undefined) return rows;
  const sign = isDescending(sort) ? -1 : 1;
  return rows
    .map((row) => ({ row, key: column.sortBy(row) }))
    .sort((a, b) => {
      if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
      return sign * compare(a.key, b.key);
    })
    .map(({ row }) => row);
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(String(a), String(b));
}

const isDescending = (sort: string): boolean => sort.startsWith("-");
const titleOf = (sort: string): string => (isDescending(sort) ? sort.slice(1) : sort);

/** As `aria-sort` of the column's head. */
export function directionOf(sort: string, title: string): "ascending" | "descending" | "none" {
  if (titleOf(sort) !== title) return "none";
  return isDescending(sort) ? "descending" : "ascending";
}

/** A press on the head of a column: ascending, descending, then the order of the API. */
export function nextSort(sort: string, title: string): string {
  if (sort === title) return `-${title}`;
  return sort === `-${title}` ? "" : title;
}
