// Finds the page of a URL, and pages with a similar name; knows no page by name.
import { type PageEntry, type PageProps, pages } from "../pages.ts";

export interface PageMatch extends PageProps {
  readonly page: PageEntry;
}

/** Parses `/ui/PAGE/ID/PART`; without a page it is the first one. Null: unknown page. */
export function matchPage(path: string): PageMatch | null {
  const words = wordsOf(path);
  const [prefix = "ui", name = pages[0]?.path, id = null, part = null, ...rest] = words ?? ["?"];
  const page = pages.find((entry) => entry.path === name);
  if (prefix !== "ui" || rest.length > 0 || page === undefined) return null;
  return { page, id, part };
}

/** Null: not valid percent-encoding. */
function wordsOf(path: string): readonly string[] | null {
  try {
    return path
      .split("/")
      .filter((word) => word !== "")
      .map((word) => decodeURIComponent(word));
  } catch {
    return null;
  }
}

/** Pages with a word of their title in the path: `/ui/routing` finds Routes. */
export const similarPages = (path: string): readonly PageEntry[] =>
  pages.filter(({ title }) =>
    title
      .toLowerCase()
      .split(/\W+/)
      .some((word) => word.length >= 4 && path.toLowerCase().includes(word.slice(0, 4))),
  );
