// The objects that reference a secret by name; reads no secret and renders nothing.
import { useRead, useResourceList } from "../../api/queries.ts";
import { nameOf } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";

export interface SecretUse {
  /** `plugin oidc` */
  readonly label: string;
  readonly href: string;
}

/** Returns the references to a secret by its name. */
export function useSecretUses(): (name: string) => readonly SecretUse[] {
  const plugins = useResourceList("plugins");
  const dns = useResourceList("dns-providers");
  const alerts = useResourceList("alerts");
  const sso = useRead<object>("sso");
  const holders = [
    ...(plugins.data ?? []).map((each) => toHolder("plugin", "plugins", each)),
    ...(dns.data ?? []).map((each) => toHolder("DNS provider", "dns-providers", each)),
    ...(alerts.data ?? []).map((each) => toHolder("alert", "alerts", each)),
    ...(sso.data === undefined
      ? []
      : [{ label: "single sign-on", href: pagePath("single-sign-on"), object: sso.data.value }]),
  ];
  return (name) => holders.filter(({ object }) => references(object, name));
}

function toHolder(word: string, page: string, object: { readonly id: string }) {
  return { label: `${word} ${nameOf(object)}`, href: pagePath(page, object.id), object };
}

function references(value: unknown, name: string): boolean {
  if (typeof value !== "object" || value === null) return false;
  if ("$secret" in value) return value.$secret === name;
  return Object.values(value).some((inner) => references(inner, name));
}
