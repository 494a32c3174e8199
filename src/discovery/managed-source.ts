// Keeps objects of the configuration as a source describes them: writes its own, deletes what it no longer has, leaves all others alone.
import type { Applications } from "../applications/applications.ts";
import type { Sign } from "../applications/reconcile.ts";
import type { Document } from "../control/body.ts";
import type { Changes } from "../control/change.ts";
import { type ChangeEvent, OlderNodes } from "../control/change-contract.ts";
import type { Draft } from "../control/draft.ts";
import type { Actor } from "../control/principal.ts";

import type { SecretBox } from "../crypto/secret-box.ts";
import { createImportNormalizers } from "../import/transfer/import-normalizers.ts";
import { applySteps } from "../import/transfer/plan.ts";
import { referenceOf } from "../model/application.ts";
import { ApiError } from "../model/error.ts";
import type { Fact } from "../model/fact.ts";
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
  type ResourceOf,
} from "../model/gateway-config.ts";
import { Pace, type Steps } from "../pace.ts";
import { idsAt } from "../model/resource.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { RegexChecker } from "../snapshot/regex-thread.ts";
import type { Claims, ClaimStore } from "./claims.ts";
import { type Item, itemOf, itemsOf, labelIn, OBJECT, summaryOf } from "./items.ts";
import { Places } from "./places.ts";
import { claimedBy, claimsOf, namedBy, type Site, streamPlacesOf, wantedPlaces } from "./site.ts";

export interface ManagedSourceOptions {
  readonly changes: Changes;
  readonly applications: Applications;
  readonly box: SecretBox;
  readonly plugins: PluginCatalogue;
  readonly regexes: RegexChecker;
  /** Absent: claims are forgotten with the process. */
  readonly claimStore?: ClaimStore | undefined;
}

/** What became of a site. */
export interface SiteState {
  readonly from: string;
  /** Hosts that it wants, with paths: `shop.example.com/api`. */
  readonly places: readonly string[];
  /** Whether it is in the configuration. */
  readonly served: boolean;
  /** The objects that it became. */
  readonly objects: readonly {
    readonly collection: CollectionName;
    readonly id: string;
    readonly name: string;
  }[];
  readonly problems: readonly string[];
}

/** Longer work gives the event loop a turn. */
const SLICE = { objects: Number.POSITIVE_INFINITY, ms: 20 } as const;

/** Begins a slice of its own, so that short work does not wait. */
const inSlices = <T>(steps: Steps<T>): Promise<T> => new Pace(SLICE).run(steps);

function* statesOf(
  sites: readonly Site[],
  items: readonly Item[],
  problems: readonly (readonly string[])[],
): Steps<readonly SiteState[]> {
  const itemsBySite = Map.groupBy(items, ({ site }) => site);
  const states: SiteState[] = [];
  for (const [index, site] of sites.entries()) {
    const own = itemsBySite.get(index) ?? [];
    states.push({
      from: site.from,
      places: [
        ...wantedPlaces(site).map(({ host, path }) => `${host}${path}`),
        ...(site.document["stream_routes"] ?? [])
          .flatMap(streamPlacesOf)
          .map(({ host, port }) => `${host}:${port}`),
      ],
      served: own.length > 0,
      objects: own.map(({ collection, id, fields }) => ({
        collection,
        id,
        name: String(fields["name"] ?? fields["label"] ?? id),
      })),
      problems: problems[index] ?? [],
    });
    yield;
  }
  return states;
}

export class ManagedSource {
  readonly #options: ManagedSourceOptions;
  /** The mark of its objects. */
  readonly owner: string;
  readonly #by: Actor;
  /** Fields of applications by id, as last written, while no other change was made: those need no work. */
  readonly #written = new Map<string, Document>();

  constructor(owner: string, options: ManagedSourceOptions) {
    this.#options = options;
    options.changes.onServed(({ by }) => {
      if (by.actor !== this.#by.actor) this.#written.clear();
    });
    this.owner = owner;
    this.#by = { actor: `discovery:${owner}`, method: "local", address: "", sessionId: null };
  }

  /** Whether a change may let a site be served that was not, or have changed what this source manages. */
  concerns({ by }: Pick<ChangeEvent, "by">, sites: readonly SiteState[]): boolean {
    if (by.actor === this.#by.actor) return false;
    return by.method !== "local" || sites.some(({ problems }) => problems.length > 0);
  }

  /**
   * Makes the configuration hold the sites, in one change. A site that cannot be served is left out and says why; the others are
   * served. Throws an ApiError when nothing can be changed at the moment.
   */
  async apply(sites: readonly Site[], claims?: Claims): Promise<readonly SiteState[]> {
    const problems = sites.map((site) => [...site.problems]);
    const refused = new Set<number>();
    await inSlices(this.#refuseTaken(sites, { problems, refused, claims }));
    for (;;) {
      const items = await inSlices(this.#itemsOf(sites, refused));
      try {
        await this.#change(items, claimedBy(sites, refused, claims));
        this.#written.clear();
        for (const { collection, id, fields } of items)
          if (collection === "applications") this.#written.set(id, fields);
        return await inSlices(statesOf(sites, items, problems));
      } catch (error) {
        const item = error instanceof ApiError ? itemOf(error, items) : null;
        if (item === null || refused.has(item.site)) throw error;
        refused.add(item.site);
        const message = (error as ApiError).message.replace(OBJECT, item.placeInSite);
        const path = /^\S*(?=: )/.exec(message)?.[0] ?? "";
        const at = await sites[item.site]?.positionOf?.(path);
        const where = at == null ? "" : `line ${at.line}, column ${at.column}: `;
        problems[item.site]?.push(`${where}${message}`);
      }
    }
  }

  /** Nodes of an older version know no claims: until they are upgraded, those of this node are not stored. */
  async #change(items: readonly Item[], fact: Fact | null): Promise<void> {
    const { applications, changes } = this.#options;
    const run = (facts: readonly Fact[]) =>
      applications.signed((sign) =>
        changes.run({
          by: this.#by,
          dryRun: false,
          mutate: (draft, pace) => pace.run(this.#write(draft, items, sign)),
          facts: () => facts,
        }),
      );
    try {
      await run(fact === null ? [] : [fact]);
    } catch (error) {
      if (fact === null || !(error instanceof OlderNodes)) throw error;
      await run([]);
    }
  }

  /** What others serve is theirs, and of two sites for one place the first one has it. */
  *#refuseTaken(
    sites: readonly Site[],
    {
      problems,
      refused,
      claims,
    }: {
      readonly problems: string[][];
      readonly refused: Set<number>;
      readonly claims: Claims | undefined;
    },
  ): Steps<void> {
    const { config } = this.#options.changes;
    const places = new Places(config);
    yield* places.addOthers(config, this.owner);
    const names = new Map<string, string>();
    claims?.releaseNames(sites.flatMap(claimsOf));
    const itemsBySite = Map.groupBy(yield* this.#itemsOf(sites, new Set()), ({ site }) => site);
    for (const [index, site] of sites.entries()) {
      const items = itemsBySite.get(index) ?? [];
      const double = items.find(
        ({ id, collection }) => names.has(id) && collection !== "certificates",
      );
      const twice =
        double === undefined ? null : `${labelIn(double)} is in ${names.get(double.id)}, too`;
      const problem =
        claims === undefined
          ? (twice ?? places.problemOf(site))
          : (places.problemOf(site) ?? claims.take(claimsOf(site)) ?? twice);
      if (problem !== null) {
        problems[index]?.push(problem);
        refused.add(index);
        continue;
      }
      places.claim(site);
      for (const { id } of items) names.set(id, site.from);
    }
  }

  #itemsOf(sites: readonly Site[], refused: ReadonlySet<number>): Steps<readonly Item[]> {
    return itemsOf(sites, refused, { owner: this.owner, config: this.#options.changes.config });
  }

  *#write(draft: Draft, items: readonly Item[], sign: Sign): Steps<void> {
    yield* this.#requireOwn(draft, items);
    // First, because one application may get the host of another.
    const count = yield* this.#removeOthers(draft, items);
    yield* this.#freeNames(draft, items);
    const others = items.filter(({ collection }) => collection !== "applications");
    const lists = Map.groupBy(others, ({ collection }) => collection)
      .entries()
      .map(([name, list]) => [name, list.map(({ id, fields }) => ({ id, ...fields }))]);
    const document = { format: 1, ...Object.fromEntries(lists) };
    const { box, plugins } = this.#options;
    const normalizers = createImportNormalizers(box, plugins);
    yield* applySteps(document, draft, { mode: "merge", keepsIds: true, box, normalizers });
    for (const { collection, id } of items)
      if (collection !== "applications") this.#mark(draft, collection, id);
    for (const item of items)
      if (item.collection === "applications" && !this.#isWritten(draft, item)) {
        this.#writeApplication(draft, item, sign);
        yield;
      }
    const written = items.filter(
      ({ collection, id }) => draft.config[collection].get(id) !== draft.base[collection].get(id),
    );
    draft.summary = `${this.owner}: ${summaryOf(written, count)}`;
  }

  /** Renamed containers can want each other's names: until all are written, what has a name that another wants has one of its own. */
  *#freeNames(draft: Draft, items: readonly Item[]): Steps<void> {
    const { config } = draft;
    const wanted = new Map<string, string>();
    for (const { collection, id, fields } of items)
      for (const taken of namedBy(collection)) wanted.set(`${taken} ${String(fields["name"])}`, id);
    for (const collection of ["applications", "services", "routes", "stream_routes"] as const)
      for (const object of [...config[collection].values()]) {
        yield;
        if (object.name === null) continue;
        const id = wanted.get(`${collection} ${object.name}`);
        if (id === undefined || id === object.id || object.managed_by !== this.owner) continue;
        const parts = config.applications.get(id)?.parts ?? [];
        if (parts.some((part) => referenceOf(part)?.id === object.id)) continue;
        // A name has at most 128 characters.
        const name = `${object.name.slice(0, 64)}.${object.id}`;
        draft.put(collection, { ...object, name } as never);
      }
  }

  /** Objects of others are not taken over because they have the same name. */
  *#requireOwn(draft: Draft, items: readonly Item[]): Steps<void> {
    for (const [collection, own] of Map.groupBy(items, (item) => item.collection)) {
      for (const { id, place } of own) {
        const object: Identity | undefined = draft.base[collection].get(id);
        if (object !== undefined && object.managed_by !== this.owner)
          throw new ApiError(409, `${place}: another object has this id`);
      }
      const { nameField, word } = definitionOf(collection);
      if (nameField === null) continue;
      const wanted = new Map(own.map((item) => [item.fields[nameField], item]));
      for (const object of draft.base[collection].values() as Iterable<Identity>) {
        yield;
        const name = (object as unknown as Document)[nameField];
        const item = wanted.get(name);
        if (item === undefined || object.id === item.id || object.managed_by === this.owner)
          continue;
        throw new ApiError(
          409,
          `${item.place}: ${word} "${String(name)}" exists already, and this source does not manage it`,
        );
      }
    }
  }

  #mark(draft: Draft, collection: CollectionName, id: string): void {
    const object: Identity | undefined = draft.config[collection].get(id);
    if (object === undefined || object.managed_by === this.owner) return;
    draft.put(collection, { ...object, managed_by: this.owner } as ResourceOf[CollectionName]);
  }

  #isWritten({ base }: Draft, { id, fields }: Item): boolean {
    return base.applications.has(id) && Bun.deepEquals(this.#written.get(id), fields);
  }

  #writeApplication(draft: Draft, { id, fields, place }: Item, sign: Sign): void {
    try {
      this.#options.applications.putManaged(
        draft,
        { id, managed_by: this.owner, document: fields },
        sign,
      );
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw new ApiError(error.status, `${place}.${error.message}`, { cause: error });
    }
    draft.setPath(id, place);
    for (const part of draft.config.applications.get(id)?.parts ?? []) {
      const reference = referenceOf(part);
      if (reference !== null) draft.setPath(reference.id, place);
    }
  }

  /** Returns how many are gone. What people refer to stays, switched off. */
  *#removeOthers(draft: Draft, items: readonly Item[]): Steps<number> {
    const kept = new Set(items.map(({ id }) => id));
    const gone = new Map<string, Gone>();
    for (const collection of collectionNames)
      for (const { id, managed_by } of draft.config[collection].values() as Iterable<Identity>) {
        if (managed_by === this.owner && !kept.has(id)) gone.set(id, { collection, id });
        yield;
      }
    // Parts go with their application.
    for (const id of kept)
      for (const part of draft.config.applications.get(id)?.parts ?? [])
        gone.delete(referenceOf(part)?.id ?? "");
    if (gone.size === 0) return 0;
    const needed = yield* neededBy(draft.config, gone);
    for (const one of gone.values())
      if (needed.has(one.id)) disable(draft, one);
      else draft.remove(one.collection, one.id);
    return gone.size - needed.size;
  }
}

interface Gone {
  readonly collection: CollectionName;
  readonly id: string;
}

function disable(draft: Draft, { collection, id }: Gone): void {
  const object = draft.config[collection].get(id) as
    (Identity & { readonly enabled?: boolean }) | undefined;
  if (object?.enabled !== true) return;
  const next = { ...object, enabled: false, updated_at: draft.stamp() };
  draft.put(collection, next as unknown as ResourceOf[CollectionName]);
}

/** Those of `gone` that other objects refer to, and what these need in turn. */
function* neededBy(
  config: GatewayConfig,
  gone: ReadonlyMap<string, Gone>,
): Steps<ReadonlySet<string>> {
  const needed = new Set<string>();
  for (const name of collectionNames) {
    const { references, mentions } = definitionOf(name);
    for (const object of config[name].values() as Iterable<Identity>) {
      yield;
      if (gone.has(object.id)) continue;
      for (const field of references)
        for (const { id } of idsAt(field, object)) if (gone.has(id)) needed.add(id);
      if (mentions !== undefined)
        for (const other of gone.values()) if (mentions(object, other)) needed.add(other.id);
    }
  }
  if (needed.size === 0) return needed;
  // An application stays with all its parts, and an object with those that it refers to.
  for (const { parts, id } of config.applications.values()) {
    const own = parts.flatMap((part) => referenceOf(part)?.id ?? []);
    if (gone.has(id) && own.some((part) => needed.has(part)))
      for (const one of [id, ...own]) if (gone.has(one)) needed.add(one);
  }
  for (const id of needed) {
    const { collection } = gone.get(id) ?? {};
    const object = collection === undefined ? undefined : config[collection].get(id);
    if (collection === undefined || object === undefined) continue;
    for (const field of definitionOf(collection).references)
      for (const other of idsAt(field, object)) if (gone.has(other.id)) needed.add(other.id);
  }
  return needed;
}
