// Sorting rows by a column.
import { expect, test } from "bun:test";
import { directionOf, nextSort, sortRows } from "../../../src/ui/parts/list-sort.ts";

interface Row {
  readonly name: string;
  readonly at: number | null;
}
const rows: readonly Row[] = [
  { name: "web-10", at: 3 },
  { name: "Web-2", at: null },
  { name: "api", at: 20 },
];
const columns = [
  { title: "Name", sortBy: ({ name }: Row) => name },
  { title: "Last used", sortBy: ({ at }: Row) => at },
];

test.each([
  ["", ["web-10", "Web-2", "api"], "the order of the API"],
  ["Name", ["api", "Web-2", "web-10"], "numbers by value, whatever the case"],
  ["-Name", ["web-10", "Web-2", "api"], "descending"],
  ["Last used", ["web-10", "api", "Web-2"], "no value comes last"],
  ["-Last used", ["api", "web-10", "Web-2"], "also descending"],
  ["Gone", ["web-10", "Web-2", "api"], "a column that does not exist"],
])("sorts by %p: %p, %s", (sort, names) => {
  expect(sortRows(rows, sort, columns).map(({ name }) => name)).toEqual(names);
  expect(rows[0]?.name).toBe("web-10");
});

test("three presses on a head sort ascending, descending and not at all", () => {
  const steps = [nextSort("", "Name"), nextSort("Name", "Name"), nextSort("-Name", "Name")];
  expect(steps).toEqual(["Name", "-Name", ""]);
  expect(steps.map((sort) => directionOf(sort, "Name"))).toEqual([
    "ascending",
    "descending",
    "none",
  ]);
  expect(nextSort("-Name", "Last used")).toBe("Last used");
});
