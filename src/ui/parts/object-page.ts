// The page of an object in a revision or the audit log, and the label of its kind; reads nothing.
import { pageNameOf, type ResourceKey, resources } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";

/** `stream_route` as a label: `stream route`. */
export function wordOf(kind: string): string {
  const facts = Object.values(resources).find((entry) => entry.kind === kind);
  return facts?.word ?? others[kind] ?? kind.replaceAll("_", " ");
}

const others: Readonly<Record<string, string>> = {
  sso: "single sign-on",
  settings: "gateway settings",
};

/** Shown on the page of what they belong to. */
const PARTS: readonly ResourceKey[] = ["targets", "credentials"];

/** Path of its page; null: it has no page. */
export function pageOf(kind: string, id: string | null): string | null {
  if (kind === "settings") return pagePath("gateway-settings");
  if (kind === "sso") return pagePath("single-sign-on");
  const keys = Object.keys(resources) as ResourceKey[];
  const key = keys.find((each) => resources[each].kind === kind && !PARTS.includes(each));
  return key === undefined || id === null ? null : pagePath(pageNameOf(key), id);
}
