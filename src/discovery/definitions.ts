// Middlewares, services and routers that containers define for others: whose they are, and which are ambiguous; converts nothing.
import { type Document, isDocument } from "../control/body.ts";
import type { Owner, WantedClaim } from "./claims.ts";

const SECTIONS = ["http", "tcp"];
const KINDS = ["services", "middlewares", "serversTransports"];

interface Definition {
  readonly owner: Owner;
  readonly section: string;
  readonly kind: string;
  readonly name: string;
  readonly value: unknown;
}

interface Defining {
  readonly owner: Owner;
  readonly dynamic: Document;
}

export class Definitions {
  /** By `http.middlewares.auth`. */
  readonly #all: ReadonlyMap<string, readonly Definition[]>;

  constructor(defining: readonly Defining[]) {
    const all = defining.flatMap(({ owner, dynamic }) => definitionsIn(owner, dynamic));
    this.#all = Map.groupBy(all, pathOf);
  }

  /**
   * What an owner may use beside its own definitions: those of its compose project first, and of others only what is defined in one
   * way. Every other name that it uses is a problem, and missing.
   */
  for(owner: Owner, dynamic: Document): { readonly others: Document; readonly problems: string[] } {
    const others: Record<string, Record<string, Record<string, unknown>>> = {};
    const problems: string[] = [];
    const own = new Set(definitionsIn(owner, dynamic).map(pathOf));
    const used = usedIn(dynamic);
    if ([...used].every((path) => own.has(path))) return { others, problems };
    for (const [path, list] of this.#all) {
      if (own.has(path)) continue;
      const near = list.filter((one) => one.owner.realm === owner.realm);
      const [first, ...rest] = near.length > 0 ? near : list;
      if (first === undefined) continue;
      const other = rest.find(({ value }) => !Bun.deepEquals(value, first.value));
      const { section, kind, name } = first;
      if (other === undefined) {
        const part = others[section] ?? {};
        others[section] = { ...part, [kind]: { ...part[kind], [name]: first.value } };
      } else if (used.has(path))
        problems.push(
          `${path} is defined by ${first.owner.key} and by ${other.owner.key} in two ways, and so closes what uses it`,
        );
    }
    return { others, problems };
  }

  /** Names of middlewares, which stay with who has defined them first; equal ones are anyone's. */
  claimsOf(owner: Owner, dynamic: Document): readonly WantedClaim[] {
    return definitionsIn(owner, dynamic)
      .filter(({ kind }) => kind !== "services")
      .map((one) => ({
        kind: "definition",
        name: pathOf(one),
        what: pathOf(one),
        holder: owner.key,
        content: new Bun.CryptoHasher("sha256")
          .update(JSON.stringify(sorted(one.value)))
          .digest("hex"),
      }));
  }
}

const pathOf = ({ section, kind, name }: Omit<Definition, "owner" | "value">): string =>
  `${section}.${kind}.${name}`;

function definitionsIn(owner: Owner, dynamic: Document): readonly Definition[] {
  return SECTIONS.flatMap((section) =>
    KINDS.flatMap((kind) => {
      const part = dynamic[section];
      const entries = isDocument(part) ? part[kind] : null;
      if (!isDocument(entries)) return [];
      return Object.entries(entries).map(([name, value]) => ({
        owner,
        section,
        kind,
        name,
        value,
      }));
    }),
  );
}

/** `http.middlewares.auth` of routers, without the names of providers: `auth@docker`. */
function usedIn(dynamic: Document): ReadonlySet<string> {
  const used = new Set<string>();
  for (const section of SECTIONS) {
    const part = dynamic[section];
    const routers = isDocument(part) && isDocument(part["routers"]) ? part["routers"] : {};
    for (const router of Object.values(routers)) {
      if (!isDocument(router)) continue;
      const { service, middlewares = [] } = router;
      if (typeof service === "string") used.add(`${section}.services.${plain(service)}`);
      if (!Array.isArray(middlewares)) continue;
      for (const name of middlewares) used.add(`${section}.middlewares.${plain(String(name))}`);
    }
  }
  return used;
}

const plain = (name: string): string => name.replace(/@.*$/, "");

/** The same text for the same content. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isDocument(value)) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, one]) => [key, sorted(one)]));
}
