// Merges dynamic configurations of several containers, as Traefik's Docker provider does; converts nothing.
import { type Document, isDocument } from "../../control/body.ts";

const SECTIONS = ["http", "tcp", "udp"];
const KINDS = ["routers", "services", "middlewares", "serversTransports"];

/** Servers of a service with the same name join; any other two definitions of a name are in conflict, and the first one stays. */
export function mergeDynamic(documents: readonly Document[]): {
  readonly dynamic: Document;
  /** `http.routers.web` */
  readonly conflicts: readonly string[];
} {
  const conflicts: string[] = [];
  const dynamic = Object.fromEntries(
    SECTIONS.map((section) => [
      section,
      Object.fromEntries(
        KINDS.map((kind) => {
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
  return { dynamic, conflicts };
}

function entriesOf(
  document: Document,
  section: string,
  kind: string,
): readonly [string, unknown][] {
  const part = document[section];
  const entries = isDocument(part) ? part[kind] : null;
  return isDocument(entries) ? Object.entries(entries) : [];
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
  const balancer = isDocument(service) ? service["loadBalancer"] : null;
  return isDocument(balancer) ? balancer : null;
}
