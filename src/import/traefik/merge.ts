// Merges dynamic configurations of several files or containers, as Traefik's providers do; converts nothing.
import { type Document, isDocument } from "../../control/body.ts";

const SECTIONS = {
  http: ["routers", "services", "middlewares", "serversTransports"],
  tcp: ["routers", "services", "middlewares", "serversTransports"],
  udp: ["routers", "services", "middlewares", "serversTransports"],
  tls: ["options", "stores"],
} as const;

/** Servers of a service with the same name join; any other two definitions of a name are in conflict, and the first one stays. */
export function mergeDynamic(documents: readonly Document[]): {
  readonly dynamic: Document;
  /** `http.routers.web` */
  readonly conflicts: readonly string[];
} {
  const conflicts: string[] = [];
  const dynamic: Document = Object.fromEntries(
    Object.entries(SECTIONS).map(([section, kinds]) => [
      section,
      Object.fromEntries(
        kinds.map((kind) => {
          const found = new Map<string, unknown>();
          for (const document of documents)
            for (const [name, value] of entriesOf(document, section, kind)) {
              const known = found.get(name);
              const both = known === undefined ? value : joined(known, value);
              if (both === null) conflicts.push(`${section}.${kind}.${name}`);
              else found.set(name, both);
            }
          return [kind, Object.fromEntries(found)];
        }),
      ),
    ]),
  );
  const { tls, ...rest } = dynamic;
  const parts = documents.map((document) => memberOf(document, "tls")).filter(isDocument);
  if (parts.length === 0 || !isDocument(tls)) return { dynamic: rest, conflicts };
  const certificates = parts.flatMap((part) => {
    const list = memberOf(part, "certificates");
    return Array.isArray(list) ? (list as unknown[]) : [];
  });
  return { dynamic: { ...rest, tls: { ...tls, certificates } }, conflicts };
}

/** Routers that may be less protected than in Traefik, because a definition of theirs is in conflict; each with its name. */
export function closedByConflicts(
  dynamic: Document,
  conflicts: readonly string[],
): Map<string, string> {
  const closed = new Map<string, string>();
  for (const conflict of conflicts) {
    const [, section, kind = "", name = ""] = /^(http|tls)\.([^.]+)\.(.*)$/s.exec(conflict) ?? [];
    if (section === undefined) continue;
    const isWide = kind === "middlewares" || kind === "options";
    for (const router of kind === "routers" ? [name] : isWide ? routersIn(dynamic) : [])
      closed.set(router, conflict);
  }
  return closed;
}

/** Names of the HTTP routers. */
export const routersIn = (dynamic: Document): readonly string[] =>
  entriesOf(dynamic, "http", "routers").map(([name]) => name);

function entriesOf(
  document: Document,
  section: string,
  kind: string,
): readonly [string, unknown][] {
  const entries = memberOf(memberOf(document, section), kind);
  return isDocument(entries) ? Object.entries(entries) : [];
}

/** Names of Traefik's settings are case-insensitive. Null: there is none. */
export function memberOf(value: unknown, name: string): unknown {
  if (!isDocument(value)) return null;
  const key = Object.hasOwn(value, name)
    ? name
    : Object.keys(value).find((each) => each.toLowerCase() === name.toLowerCase());
  return key === undefined ? null : (value[key] ?? null);
}

/** Null: they are in conflict. */
function joined(first: unknown, next: unknown): unknown {
  if (Bun.deepEquals(first, next)) return first;
  const [one, other] = [balancerOf(first), balancerOf(next)];
  if (one === null || other === null) return null;
  const { servers: a = [], ...rest } = one;
  const { servers: b = [], ...others } = other;
  if (!Bun.deepEquals(rest, others) || !Array.isArray(a) || !Array.isArray(b)) return null;
  return { loadBalancer: { ...rest, servers: [...(a as unknown[]), ...(b as unknown[])] } };
}

function balancerOf(service: unknown): Document | null {
  const balancer = isDocument(service) ? memberOf(service, "loadBalancer") : null;
  return isDocument(balancer) ? balancer : null;
}
