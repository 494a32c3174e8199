// Who is who after containers were renamed and recreated: replays what Docker said, in its order; knows no label.
import type { StoredClaim } from "../model/fact.ts";

/** What a container was called when an event about it was sent. */
export interface Sighting {
  readonly id: string;
  readonly name: string;
  /** Of a rename: what it was called before. Podman does not say. */
  readonly formerName?: string;
}

interface Look {
  /** Containers that exist, by id. */
  readonly owners: ReadonlyMap<string, { readonly key: string }>;
  /** Since the last look, in their order; also older ones. */
  readonly sightings: readonly Sighting[];
}

/** The key of a container's owner that is no service. */
export const keyOfContainer = (name: string): string => `container ${name}`;

/** Holders by the keys that containers have at one moment. */
class Identities {
  /** By id: the key of the container. */
  readonly #keys = new Map<string, string>();
  /** By key: the holder that it is. */
  readonly #holders = new Map<string, string>();
  /** By key: the holder that had it until it was renamed. */
  readonly #left = new Map<string, string>();

  constructor(stored: readonly StoredClaim[]) {
    for (const { kind, name, holder } of stored) {
      if (kind !== "container") continue;
      this.#keys.set(name, holder);
      this.#holders.set(holder, holder);
    }
  }

  sight({ id, name, formerName }: Sighting): void {
    if (formerName !== undefined && !this.#keys.has(id))
      this.#begin(id, keyOfContainer(formerName));
    this.see([[id, keyOfContainer(name)]]);
  }

  /** A new container is the successor of the one that has its name, or was renamed to make room for it. */
  #begin(id: string, key: string): void {
    this.#keys.set(id, key);
    const left = this.#left.get(key);
    if (this.#holders.has(key) || left === undefined) return;
    for (const [other, holder] of this.#holders) if (holder === left) this.#holders.delete(other);
    this.#holders.set(key, left);
  }

  /** What containers are called at one moment: two may have exchanged their names. */
  see(names: readonly (readonly [id: string, key: string])[]): void {
    const moved: (readonly [key: string, holder: string])[] = [];
    for (const [id, key] of names) {
      const before = this.#keys.get(id);
      if (before === undefined || before === key) continue;
      this.#keys.set(id, key);
      const holder = this.#holders.get(before);
      if (holder === undefined) continue;
      this.#holders.delete(before);
      this.#left.set(before, holder);
      moved.push([key, holder]);
    }
    for (const [key, holder] of moved) this.#holders.set(key, holder);
    for (const [id, key] of names) if (!this.#keys.has(id)) this.#begin(id, key);
  }

  renamed(): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    for (const [key, holder] of this.#holders) if (key !== holder) found.set(holder, key);
    return found;
  }
}

/** Holders whose key is another one now, with it. */
export function renamedOf(
  stored: readonly StoredClaim[],
  { owners, sightings }: Look,
): ReadonlyMap<string, string> {
  const identities = new Identities(stored);
  // Services of compose keep their names.
  const isService = (id: string) => owners.get(id)?.key.startsWith("container ") === false;
  for (const sighting of sightings) if (!isService(sighting.id)) identities.sight(sighting);
  identities.see([...owners].flatMap(([id, { key }]) => (isService(id) ? [] : [[id, key]])));
  return identities.renamed();
}
