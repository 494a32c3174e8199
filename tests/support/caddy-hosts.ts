// The hosts of a configuration of Caddy that an import lost: neither a route has them, nor does the report name them.
import type { Conversion } from "../../src/import/convert.ts";

interface Result extends Pick<Conversion, "report"> {
  // biome-ignore lint/suspicious/noExplicitAny: tests read documents of every shape
  readonly document: any;
}

interface Imported {
  readonly hosts: readonly string[];
}

/** Every host of a matcher, at any depth. */
function hostsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(hostsIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === "host" && Array.isArray(inner)
      ? inner.map((host) => String(host).toLowerCase())
      : hostsIn(inner),
  );
}

export function missingHosts(
  source: { readonly apps: { readonly http: unknown } },
  { document, report }: Result,
): readonly string[] {
  const routes: readonly Imported[] = document.routes ?? [];
  const served = new Set(routes.flatMap(({ hosts }) => hosts));
  const told = report.filter(({ level }) => level !== "imported");
  const isNamed = (host: string) =>
    told.some(({ what }) => !what.startsWith("certificate ") && what.includes(host));
  // Where a wildcard is only the name of a site, its routes have the hosts.
  const isServedBelow = (host: string) =>
    host.startsWith("*.") && [...served].some((name) => name.endsWith(host.slice(1)));
  return [...new Set(hostsIn(source.apps.http))].filter(
    (host) => !served.has(host) && !isNamed(host) && !isServedBelow(host),
  );
}
