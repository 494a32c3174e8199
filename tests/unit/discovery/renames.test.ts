// Who is who after containers were renamed and recreated, with and without events.
import { expect, test } from "bun:test";
import type { StoredClaim } from "../../../src/model/fact.ts";
import { renamedOf, type Sighting } from "../../../src/discovery/renames.ts";

/** `a=web`: the container with the id `a` is called `web`. */
const pairs = (text: string) =>
  text.split(" ").flatMap((pair) => (pair === "" ? [] : [pair.split("=") as [string, string]]));

const storedAs = (text: string): StoredClaim[] =>
  pairs(text).map(([name, called]) => ({
    kind: "container",
    name,
    holder: `container ${called}`,
    content: "",
    gone_at: null,
  }));

const rows: readonly {
  readonly what: string;
  readonly before: string;
  readonly events?: string;
  readonly after: string;
  /** Former and new names of holders. */
  readonly renamed: string;
}[] = [
  { what: "nothing", before: "a=web", after: "a=web", renamed: "" },
  { what: "a new name", before: "a=web", after: "a=shop", renamed: "web=shop" },
  { what: "recreated", before: "a=web", after: "b=web", renamed: "" },
  {
    what: "exchanged names",
    before: "a=web b=shop",
    after: "a=shop b=web",
    renamed: "web=shop shop=web",
  },
  {
    what: "renamed to make room for its successor",
    before: "a=web",
    after: "a=web-old b=web",
    renamed: "",
  },
  {
    what: "the same, by events, and removed",
    before: "a=web",
    events: "a=web-old b=web",
    after: "b=web",
    renamed: "",
  },
  {
    what: "renamed, then recreated with the new name",
    before: "a=web",
    events: "a=shop b=shop",
    after: "b=shop",
    renamed: "web=shop",
  },
  {
    what: "recreated, then renamed",
    before: "a=web",
    events: "b=web b=shop",
    after: "b=shop",
    renamed: "web=shop",
  },
  {
    what: "renamed, recreated, renamed, recreated",
    before: "a=web",
    events: "a=one b=one b=two c=two",
    after: "c=two",
    renamed: "web=two",
  },
  {
    what: "recreated with the name of one that was renamed in the same moment",
    before: "a=web b=shop",
    events: "a=old b=web c=web",
    after: "a=old c=web",
    renamed: "web=old shop=web",
  },
  {
    what: "exchanged by events, then recreated",
    before: "a=web b=shop",
    events: "a=tmp b=web a=shop c=web",
    after: "a=shop c=web",
    renamed: "web=shop shop=web",
  },
  {
    what: "a new one with a name of its own that takes a free one later",
    before: "a=web",
    events: "b=web-new b=web",
    after: "b=web",
    renamed: "",
  },
  {
    what: "events that the list before has shown already",
    before: "a=shop b=web",
    events: "a=tmp b=web a=shop",
    after: "a=shop b=web",
    renamed: "",
  },
];

test.each(rows.map((row) => [row.what, row] as const))(
  "%s",
  (_, { before, events = "", after, renamed }) => {
    const owners = new Map(pairs(after).map(([id, name]) => [id, { key: `container ${name}` }]));
    const sightings: Sighting[] = pairs(events).map(([id, name]) => ({ id, name }));
    const found = renamedOf(storedAs(before), { owners, sightings });
    const expected = pairs(renamed).map(([from, to]) => [`container ${from}`, `container ${to}`]);
    expect([...found].toSorted()).toEqual(expected.toSorted() as [string, string][]);
  },
);

test("a rename says what a container was called that no event and no list has shown", () => {
  const owners = new Map([["b", { key: "container shop" }]]);
  const sightings = [{ id: "b", name: "shop", formerName: "web" }];
  const found = renamedOf(storedAs("a=web"), { owners, sightings });
  expect([...found]).toEqual([["container web", "container shop"]]);
});

test("a service of compose has its name from compose", () => {
  const owners = new Map([["b", { key: "compose media/web" }]]);
  const sightings = [
    { id: "a", name: "old" },
    { id: "b", name: "web" },
  ];
  const found = renamedOf(storedAs("a=web"), { owners, sightings });
  expect([...found]).toEqual([["container web", "container old"]]);
});
