// What the palette offers for a query, by role.
import { expect, test } from "bun:test";
import { bestFirst, fixedEntries, objectEntries } from "../../../src/ui/shell/palette-entries.ts";

const labels = (query: string, role: "viewer" | "editor" | "admin", isReadOnly = false) =>
  fixedEntries(query, { role, isReadOnly }).map(({ label }) => label);

test("every word of the query must occur", () => {
  expect(labels("route new", "editor")).toEqual(["New route", "New stream route"]);
  expect(labels("nothing of it", "admin")).toEqual([]);
});

test("roles are offered what they may open and create", () => {
  expect(labels("user", "editor")).toEqual([]);
  expect(labels("user", "admin")).toEqual(["Users", "New user"]);
  expect(labels("listener", "editor")).toEqual(["Listeners"]);
  expect(labels("new", "viewer")).toEqual([]);
  expect(labels("new", "admin", true)).toEqual([]);
});

test("a URL can be tested as a request", () => {
  const entries = fixedEntries("shop.test/cart", { role: "viewer", isReadOnly: false });
  expect(entries.map(({ href }) => href)).toEqual([
    "/ui/routes/test?url=http%3A%2F%2Fshop.test%2Fcart",
  ]);
});

test("names that begin with the query come before others, over all resources", () => {
  const services = objectEntries("services", [{ id: "1", name: "web" } as never], "shop");
  const names = ["my-shop", "shop-2", "shop"].map((name) => ({ id: name, name }));
  const routes = objectEntries("routes", names, "shop");
  expect(bestFirst([...services, ...routes], "shop").map(({ label }) => label)).toEqual([
    ...["shop", "shop-2", "my-shop", "web"],
  ]);
});
