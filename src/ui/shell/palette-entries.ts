// What the palette offers: actions, pages and objects that the role may open; renders nothing.
import { includesRole } from "../api/queries.ts";
import { nameOf, pageNameOf, type ResourceKey, resources, type Role } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { pages } from "../pages.ts";
import { hasWords } from "../parts/list-filter.ts";

export interface PaletteEntry {
  readonly label: string;
  /** `route`, `page` or `action`, beside the label. */
  readonly hint: string;
  readonly href: string;
}

interface Viewer {
  readonly role: Role;
  /** Whether a file manages the configuration. */
  readonly isReadOnly: boolean;
}

/** Undefined for targets and credentials, which have no page. */
const entryOf = (resource: ResourceKey) => pages.find(({ path }) => path === pageNameOf(resource));

/** Resources with a page that the role may open. */
export const searchable = (role: Role): readonly ResourceKey[] =>
  (Object.keys(resources) as ResourceKey[]).filter((resource) => {
    const page = entryOf(resource);
    return page !== undefined && includesRole(role, page.role);
  });

/** Actions and pages whose label has all words of the query. */
export function fixedEntries(query: string, { role, isReadOnly }: Viewer): readonly PaletteEntry[] {
  const test = pagePath("routes", "test");
  const url = /^(?:https?:\/\/)?[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:\/\S*)?$/.exec(query.trim())?.[0];
  const tests: PaletteEntry[] = [
    action("Test a request", test),
    ...(url === undefined
      ? []
      : [action(`Test a request to ${url}`, `${test}?url=${encodeURIComponent(toUrl(url))}`)]),
  ];
  const creates = searchable(role)
    .filter((resource) => !isReadOnly && includesRole(role, resources[resource].writes))
    .map((resource) =>
      action(`New ${resources[resource].word}`, pagePath(pageNameOf(resource), "new")),
    );
  const open = pages
    .filter((page) => includesRole(role, page.role))
    .map(({ title, path }) => ({ label: title, hint: "page", href: pagePath(path) }));
  return [...open, ...tests, ...creates].filter(({ label }) =>
    hasWords(label.toLowerCase(), query.trim()),
  );
}

const action = (label: string, href: string): PaletteEntry => ({
  label,
  hint: "action",
  href,
});

const toUrl = (text: string): string => (/^https?:/.test(text) ? text : `http://${text}`);

/** Per resource: more are found by a longer query, or in the list. */
const MAX_OBJECTS = 6;

export function objectEntries(
  resource: ResourceKey,
  objects: readonly { readonly id: string }[],
  query: string,
): readonly PaletteEntry[] {
  const found = objects.map((object) => ({
    label: nameOf(object),
    hint: resources[resource].word,
    href: pagePath(pageNameOf(resource), object.id),
  }));
  return bestFirst(found, query).slice(0, MAX_OBJECTS);
}

/** Names that begin with the query come first, then those that contain it; others match by a tag or a host. */
export function bestFirst(entries: readonly PaletteEntry[], query: string): PaletteEntry[] {
  const asked = query.trim().toLowerCase();
  const rank = ({ label }: PaletteEntry): number => {
    const text = label.toLowerCase();
    if (text.startsWith(asked)) return text === asked ? 0 : 1;
    return text.includes(asked) ? 2 : 3;
  };
  return entries.toSorted((a, b) => rank(a) - rank(b));
}
