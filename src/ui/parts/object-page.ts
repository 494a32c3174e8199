// The page of an object in a revision or the audit log, and the label of its kind; reads nothing.
import { resources } from "../api/resources.ts";
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

const pages: Readonly<Record<string, string>> = {
  application: "applications",
  service: "services",
  route: "routes",
  plugin: "plugins",
  stream_route: "stream-routes",
  consumer: "consumers",
  certificate: "certificates",
  acme_account: "acme-accounts",
  dns_provider: "dns-providers",
  alert: "alerts",
  listener: "listeners",
  user: "users",
  token: "tokens",
  secret: "secrets",
};

/** Path of its page; null: it has no page. */
export function pageOf(kind: string, id: string | null): string | null {
  if (kind === "settings") return pagePath("gateway-settings");
  if (kind === "sso") return pagePath("single-sign-on");
  const page = pages[kind];
  return page === undefined || id === null ? null : pagePath(page, id);
}
