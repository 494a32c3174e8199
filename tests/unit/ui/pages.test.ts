// The URLs of pages: each after its title, with every spelling that people type.
import { describe, expect, test } from "bun:test";
import { pagePath } from "../../../src/ui/page-path.ts";
import { pages } from "../../../src/ui/pages.ts";
import { matchPage, similarPages } from "../../../src/ui/shell/page-match.ts";

const slugOf = (title: string) => title.toLowerCase().replaceAll(/[^a-z]+/g, "-");
const listed = pages.filter(({ isListed }) => isListed !== false);

test.each(listed.map(({ title, path }) => [title, path] as const))(
  "%s is found under its name",
  (title, path) => expect(path).toBe(slugOf(title)),
);

describe("a path", () => {
  test.each([
    ["/", "dashboard", null, "the gateway's address alone"],
    ["/ui", "dashboard", null, "no page"],
    ["/ui/", "dashboard", null, "no page, with a slash"],
    ["/ui/dashboard", "dashboard", null, "by name"],
    ["/ui/routes/", "routes", null, "a slash at the end"],
    ["/ui/routes/a%2Fb", "routes", "a/b", "an id with a slash"],
  ])("%s opens %s, id %p: %s", (path, page, id) => {
    const match = matchPage(path);
    expect([match?.page.path, match?.id]).toEqual([page, id]);
  });

  test.each([
    ["/ui/nothing", "no page of that name"],
    ["/ui/routes/a/b/c", "too many parts"],
    ["/ui/%zz", "no valid percent-encoding"],
    ["/routes", "pages are below /ui"],
  ])("%s is unknown: %s", (path) => expect(matchPage(path)).toBeNull());

  test("of every page leads back to it", () => {
    for (const page of pages) expect(matchPage(pagePath(page.path))?.page).toBe(page);
  });
});

test("a mistyped path finds the pages that it could mean", () => {
  expect(similarPages("/ui/route").map(({ title }) => title)).toEqual(["Routes", "Stream routes"]);
  expect(similarPages("/ui/settings").map(({ title }) => title)).toEqual(["Gateway settings"]);
  expect(similarPages("/ui/xyz")).toEqual([]);
});
