// Which container has a host or a name first, and keeps it while it exists: remembered in the database; knows no label.
import type { Fact, StoredClaim } from "../model/fact.ts";
import { renamedOf, type Sighting } from "./renames.ts";

/** Who has claims. Names and services are of the owner, hosts of its realm: services of one compose project share them. */
export interface Owner {
  /** `container web`, `compose media/web`. */
  readonly key: string;
  /** `container web`, `compose media`. */
  readonly realm: string;
}

/** What a site needs for itself. */
export interface WantedClaim extends Omit<StoredClaim, "gone_at"> {
  /** In messages: `shop.test`, `route "web"`. */
  readonly what: string;
}

export interface ClaimStore {
  load(source: string): readonly StoredClaim[];
}

export interface ClaimContext {
  /** Containers that exist, also stopped ones, by id. */
  readonly owners: ReadonlyMap<string, Owner>;
  /** What events have called containers since the last look, in their order. */
  readonly sightings: readonly Sighting[];
  /** When the last of the events was, in milliseconds of the API's clock; 0: there was none. */
  readonly eventAt: number;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** How long the claims of a holder stay that is gone. */
  readonly keptMs: number;
  /** Containers that exist, but do not run: what they want is unknown. */
  readonly stopped: ReadonlySet<string>;
}

const keyOf = ({ kind, name }: Pick<StoredClaim, "kind" | "name">): string => `${kind} ${name}`;

const eventClaim = (at: number): StoredClaim => ({
  kind: "event",
  name: "last",
  holder: "",
  content: String(at),
  gone_at: null,
});

/** When the last event was that is part of the claims, in milliseconds of the API's clock; 0: none is. */
export const eventTimeOf = (stored: readonly StoredClaim[]): number =>
  Number(stored.find(({ kind }) => kind === "event")?.content ?? 0);

/** The claims of one source for one look at its containers. */
export class Claims {
  readonly #source: string;
  readonly #context: ClaimContext;
  readonly #stored: ReadonlyMap<string, StoredClaim>;
  readonly #held = new Map<string, StoredClaim>();
  /** By holder: what the ids of its objects derive from, which a new name does not change. */
  readonly #roots = new Map<string, string>();

  constructor(source: string, loaded: readonly StoredClaim[], context: ClaimContext) {
    const stored = loaded.filter(({ kind }) => kind !== "event");
    this.#source = source;
    this.#context = context;
    this.#stored = new Map(stored.map((claim) => [keyOf(claim), claim]));
    const { owners, now, keptMs } = context;
    const present = new Set([...owners.values()].flatMap(({ key, realm }) => [key, realm]));
    const renamed = renamedOf(stored, context);
    for (const claim of stored) {
      const holder = renamed.get(claim.holder) ?? claim.holder;
      const gone_at = present.has(holder) ? null : (claim.gone_at ?? new Date(now).toISOString());
      if (gone_at !== null && Date.parse(gone_at) + keptMs <= now) continue;
      this.#held.set(keyOf(claim), { ...claim, holder, gone_at });
      if (claim.kind === "container") this.#roots.set(holder, claim.content);
    }
    this.#remember(owners);
  }

  /** The root of each container, of which a recreated one has the same. */
  #remember(owners: ReadonlyMap<string, Owner>): void {
    const roots = new Set(this.#roots.values());
    for (const [name, { key: holder }] of owners) {
      const key = keyOf({ kind: "container", name });
      // Services of compose keep their names.
      if (!holder.startsWith("container ") || this.#held.has(key)) continue;
      const content =
        this.#roots.get(holder) ?? (roots.has(holder) ? `${holder} ${name.slice(0, 12)}` : holder);
      this.#roots.set(holder, content);
      roots.add(content);
      this.#held.set(key, { kind: "container", name, holder, content, gone_at: null });
    }
    for (const [key, { kind, name, holder, gone_at }] of this.#held)
      if (kind === "container" && gone_at === null && !owners.has(name)) {
        const isReplaced = [...this.#held.values()].some(
          (other) => other.kind === kind && other.holder === holder && owners.has(other.name),
        );
        if (isReplaced) this.#held.delete(key);
      }
  }

  /** The same before anything was taken. */
  again(): Claims {
    return new Claims(this.#source, [...this.#stored.values()], this.#context);
  }

  /** Whether nothing was claimed before: the first look, also after an upgrade. */
  get isFirst(): boolean {
    return this.#stored.size === 0;
  }

  /** What the ids of the objects of an owner derive from. */
  rootOf(owner: Owner): string {
    return this.#roots.get(owner.key) ?? owner.key;
  }

  /** Owners and realms with a claim on something. */
  holders(): ReadonlySet<string> {
    const held = [...this.#held.values()].filter(({ kind }) => kind !== "container");
    return new Set(held.map(({ holder }) => holder));
  }

  /** Names of objects that their holders, which say what they want, do not want any more: another container may have them at once. */
  releaseNames(wanted: readonly WantedClaim[]): void {
    const holders = new Set(wanted.map(({ holder }) => holder));
    const kept = new Set(wanted.map((claim) => `${keyOf(claim)} ${claim.holder}`));
    for (const [key, { kind, holder }] of this.#held)
      if (kind === "name" && holders.has(holder) && !kept.has(`${key} ${holder}`))
        this.#held.delete(key);
  }

  /** Why it cannot have all of them, a sentence; null: it has them now. */
  take(wanted: readonly WantedClaim[]): string | null {
    for (const claim of wanted) {
      const held = this.#held.get(keyOf(claim)) ?? this.#above(claim);
      if (held === undefined || held.holder === claim.holder) continue;
      if (held.content === "" || held.content !== claim.content) return this.#said(claim, held);
    }
    for (const { what: _, ...claim } of wanted)
      if (this.#held.get(keyOf(claim))?.holder !== claim.holder || claim.kind === "definition")
        this.#take(claim);
    return null;
  }

  #take(claim: Omit<StoredClaim, "gone_at">): void {
    const held = this.#held.get(keyOf(claim));
    // A definition that is the same stays with who has it.
    if (held !== undefined && held.holder !== claim.holder) return;
    this.#held.set(keyOf(claim), { ...claim, gone_at: null });
  }

  /** The wildcard of another owner that covers a host. */
  #above({ kind, name, holder }: WantedClaim): StoredClaim | undefined {
    if (kind !== "host") return undefined;
    for (let at = name.indexOf("."); at !== -1; at = name.indexOf(".", at + 1)) {
      const held = this.#held.get(keyOf({ kind, name: `*${name.slice(at)}` }));
      if (held !== undefined && held.holder !== holder) return held;
    }
    return undefined;
  }

  #said({ kind, what }: WantedClaim, { holder, gone_at }: StoredClaim): string {
    if (gone_at !== null) {
      const until = new Date(Date.parse(gone_at) + this.#context.keptMs).toISOString();
      return `${what} stays with ${holder}, which does not run with it, until ${until}`;
    }
    if (kind === "definition") return `${what} is defined by ${holder}, too, with other content`;
    return `${what} is ${kind === "name" ? "defined" : "served"} already, by ${holder}`;
  }

  /**
   * What no container wants any more is free after the same time, unless one of the owner is stopped or, `refused`, not served.
   */
  expire(wanted: readonly WantedClaim[], refused: readonly Owner[]): void {
    const { owners, stopped, now } = this.#context;
    const idle = [...stopped].flatMap((id) => owners.get(id) ?? []);
    const unknown = new Set([...idle, ...refused].flatMap(({ key, realm }) => [key, realm]));
    const kept = new Set(wanted.map((claim) => `${keyOf(claim)} ${claim.holder}`));
    for (const [key, claim] of this.#held) {
      const isKept = unknown.has(claim.holder) || kept.has(`${key} ${claim.holder}`);
      if (claim.kind === "container" || isKept || claim.gone_at !== null) continue;
      const since = this.#stored.get(key)?.gone_at ?? null;
      const gone_at = since ?? new Date(now).toISOString();
      if (Date.parse(gone_at) + this.#context.keptMs <= now) this.#held.delete(key);
      else this.#held.set(key, { ...claim, gone_at });
    }
  }

  /** What to store; null: nothing has changed. */
  fact(): Fact | null {
    const claims = [...this.#held].filter(
      ([key, claim]) => !Bun.deepEquals(this.#stored.get(key), claim),
    );
    const released = [...this.#stored].filter(([key]) => !this.#held.has(key));
    if (claims.length === 0 && released.length === 0) return null;
    const { eventAt } = this.#context;
    return {
      kind: "discovery_claims",
      source: this.#source,
      claims: [
        ...claims.map(([, claim]) => claim),
        ...(eventAt === 0 ? [] : [eventClaim(eventAt)]),
      ],
      released: released.map(([, { kind, name }]) => ({ kind, name })),
    };
  }
}
