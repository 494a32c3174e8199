// Create, read, replace, patch and delete for any collection; a ResourceKind holds the differences. Knows no HTTP.
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { type Identity, UUID_PATTERN } from "../model/fields.ts";
import {
  type CollectionName,
  definitionOf,
  type GatewayConfig,
  mapCollections,
  type ResourceOf,
} from "../model/gateway-config.ts";
import { mergePatch } from "../model/merge-patch.ts";
import { isDocument, withoutIdentity, withoutReadOnly } from "./body.ts";
import type { Changes } from "./change.ts";
import type { Actor } from "./principal.ts";
import type { Draft } from "./draft.ts";
import { findByKey, withIds } from "./key.ts";
import { firstOf, limitOf, matchesFilters, ofOwner, type QueryEntry } from "./list-filter.ts";
import { deleteWithOwned } from "./removal.ts";
import { labelOf } from "./reference.ts";
import { type Conditions, requireConditions, tagOf } from "./representation.ts";

/** The writable fields of an object. */
export type FieldsOf<K extends CollectionName> = Omit<ResourceOf[K], keyof Identity>;

/** A decoded document. */
export interface Decoded<K extends CollectionName> {
  readonly fields: FieldsOf<K>;
  /** Writes nested objects of the document, such as targets of a service, to the draft after the object. */
  readonly finish?: (object: ResourceOf[K], draft: Draft) => void;
  /** Members that only this response shows beside the representation, such as a generated token. */
  readonly shownOnce?: Readonly<Record<string, unknown>>;
}

/** The differences of one collection. */
export interface ResourceKind<K extends CollectionName, V> {
  readonly collection: K;
  /** Fields of a request that are ignored beside identity. Default: those that only responses have. */
  readonly readOnly?: readonly string[];
  /**
   * Validates a document and resolves names to ids; throws the first error. `old` is null for a new object. Default: as the
   * definition says.
   */
  readonly decode?: (document: unknown, draft: Draft, old: ResourceOf[K] | null) => Decoded<K>;
  /** The writable document of a stored object, the base of patches; default: all of it. */
  readonly sendable?: (object: ResourceOf[K]) => object;
  /** Member of the document that `finish` writes: a patch without it does not call `finish`. */
  readonly finished?: string;
  /** Finds the object of a path; default: by id or unique name. */
  readonly find?: (
    objects: ReadonlyMap<string, ResourceOf[K]>,
    key: string,
  ) => ResourceOf[K] | null;
  /** Returns the function from stored object to representation; called once per list. Default: the object itself. */
  readonly viewer?: (config: GatewayConfig) => (object: ResourceOf[K]) => V;
  /** The content of a version tag, in the same manner. Default: the object itself. */
  readonly content?: (config: GatewayConfig) => (object: ResourceOf[K]) => unknown;
}

type WholeKind<K extends CollectionName, V> = Omit<ResourceKind<K, V>, "find"> &
  Required<Pick<ResourceKind<K, V>, "readOnly" | "decode" | "find" | "viewer" | "content">> & {
    readonly word: string;
  };

const itself = () => (object: unknown) => object;

/** The kind with its defaults. */
function wholeOf<K extends CollectionName, V>(kind: ResourceKind<K, V>): WholeKind<K, V> {
  const { collection } = kind;
  const { word, readOnly, input, normalize } = definitionOf(collection);
  return {
    word,
    readOnly,
    decode: (document, { config }) => {
      const fields = withIds(collection, decode(input, document), config);
      return { fields: normalize(fields as never) as unknown as FieldsOf<K> };
    },
    find: findByKey,
    viewer: itself as () => (object: ResourceOf[K]) => V,
    content: itself,
    ...kind,
  };
}

export interface WriteOptions {
  readonly by: Actor;
  readonly dryRun: boolean;
  readonly conditions: Conditions;
  /** As in `ChangeRequest`. */
  readonly force?: boolean;
}

export interface Read<V> {
  readonly view: V;
  readonly tag: string;
}

export interface Written<V> extends Read<V> {
  readonly revision: number;
  readonly warnings: readonly string[];
}

export interface Removed {
  readonly revision: number;
  /** Labels of all other deleted objects. */
  readonly removed: readonly string[];
}

interface Mutated {
  readonly id: string;
  readonly shownOnce: Decoded<CollectionName>["shownOnce"];
}

export class Resource<K extends CollectionName, V> {
  readonly #changes: Changes;
  readonly #kind: WholeKind<K, V>;

  constructor(changes: Changes, kind: ResourceKind<K, V>) {
    this.#changes = changes;
    this.#kind = wholeOf(kind);
  }

  /** All matches, oldest first; throws for an unknown filter. */
  list(query: readonly QueryEntry[]): Read<readonly V[]> {
    const { config } = this.#changes;
    const { collection } = this.#kind;
    const { limit, filters } = limitOf(query, definitionOf(collection).api.takesLimit ?? false);
    const all = ofOwner(filters, collection, config) ?? this.#all(config).values();
    const fits = matchesFilters<ResourceOf[K]>(filters, collection, config);
    const objects = firstOf(all, fits, limit);
    return {
      view: objects.map(this.#kind.viewer(config)),
      tag: tagOf(objects.map(this.#kind.content(config))),
    };
  }

  get(key: string): Read<V> {
    const { config } = this.#changes;
    return this.#read(config, this.#existing(config, key));
  }

  create(body: unknown, options: WriteOptions): Promise<Written<V>> {
    return this.#write(options, (draft) => {
      const document = withoutIdentity(body, this.#kind.readOnly);
      return this.#insert(draft, Bun.randomUUIDv7(), document);
    });
  }

  /** Replaces the object; an unused id creates one. */
  replace(key: string, body: unknown, options: WriteOptions): Promise<Written<V>> {
    return this.#write(options, (draft) => {
      const old = this.#find(draft.config, key);
      requireConditions(options.conditions, old && this.#kind.content(draft.config)(old));
      if (old === null && !UUID_PATTERN.test(key)) throw this.#missing(key);
      const id = old?.id ?? key.toLowerCase();
      const document = withoutReadOnly(body, id, this.#kind.readOnly);
      return old === null
        ? this.#insert(draft, id, document)
        : this.#update(draft, old, { document, finishes: true });
    });
  }

  /** RFC 7396: members of `patch` replace those of the object, null restores a default. */
  patch(key: string, patch: unknown, options: WriteOptions): Promise<Written<V>> {
    return this.#write(options, (draft) => {
      const old = this.#existing(draft.config, key);
      requireConditions(options.conditions, this.#kind.content(draft.config)(old));
      if (!isDocument(patch)) throw invalid("", "body must be a JSON object");
      const changes = withoutReadOnly(patch, old.id, this.#kind.readOnly);
      const sendable = this.#kind.sendable?.(old) ?? old;
      const document = mergePatch(withoutReadOnly(sendable, old.id, []), changes);
      const { finished } = this.#kind;
      const isPartial = finished !== undefined && !Object.hasOwn(patch, finished);
      return this.#update(draft, old, { document, finishes: !isPartial });
    });
  }

  async remove(
    key: string,
    options: WriteOptions & { readonly cascade: boolean },
  ): Promise<Removed> {
    const { value, revision } = await this.#changes.run({
      ...options,
      mutate: (draft) => {
        const { collection } = this.#kind;
        const { id } = this.#existing(draft.config, key);
        const old = this.#all(draft.config).get(id);
        requireConditions(options.conditions, old && this.#kind.content(draft.config)(old));
        draft.summary = `delete ${labelOf(draft.config, { collection, id })}`;
        return deleteWithOwned(draft, { collection, id }, options.cascade);
      },
    });
    return { removed: value, revision };
  }

  async #write(options: WriteOptions, mutate: (draft: Draft) => Mutated): Promise<Written<V>> {
    const { value, revision, warnings } = await this.#changes.run({
      ...options,
      mutate: (draft) => {
        const { id, shownOnce } = mutate(draft);
        const object = this.#all(draft.config).get(id);
        if (object === undefined) throw new Error(`${this.#kind.word} ${id} was not written`);
        const { view, tag } = this.#read(draft.config, object);
        // A dry run discards generated values.
        const isShown = shownOnce !== undefined && !options.dryRun;
        return { view: isShown ? { ...view, ...shownOnce } : view, tag };
      },
    });
    return { ...value, revision, warnings };
  }

  #insert(draft: Draft, id: string, document: unknown): Mutated {
    const { fields, finish, shownOnce } = this.#kind.decode(document, draft, null);
    const at = draft.stamp();
    const object = { id, ...fields, created_at: at, updated_at: at } as unknown as ResourceOf[K];
    this.#put(draft, object, "create");
    finish?.(object, draft);
    return { id, shownOnce };
  }

  #update(
    draft: Draft,
    old: ResourceOf[K],
    { document, finishes }: { readonly document: unknown; readonly finishes: boolean },
  ): Mutated {
    const { fields, finish, shownOnce } = this.#kind.decode(document, draft, old);
    const { id, created_at, updated_at } = old;
    const same = { id, ...fields, created_at, updated_at } as unknown as ResourceOf[K];
    // Writing the stored value again must not disturb the workers.
    const object = Bun.deepEquals(same, old) ? old : { ...same, updated_at: draft.stamp() };
    if (object !== old) this.#put(draft, object, "update");
    draft.setPath(id, "");
    draft.summary = `update ${labelOf(draft.config, { collection: this.#kind.collection, id })}`;
    if (finishes) finish?.(object, draft);
    return { id, shownOnce };
  }

  #put(draft: Draft, object: ResourceOf[K], verb: string): void {
    const { collection } = this.#kind;
    draft.put(collection, object);
    draft.setPath(object.id, "");
    draft.summary = `${verb} ${labelOf(draft.config, { collection, id: object.id })}`;
  }

  #read(config: GatewayConfig, object: ResourceOf[K]): Read<V> {
    return {
      view: this.#kind.viewer(config)(object),
      tag: tagOf(this.#kind.content(config)(object)),
    };
  }

  #all(config: GatewayConfig): ReadonlyMap<string, ResourceOf[K]> {
    return config[this.#kind.collection] as ReadonlyMap<string, ResourceOf[K]>;
  }

  #find(config: GatewayConfig, key: string): ResourceOf[K] | null {
    return this.#kind.find(this.#all(config), key);
  }

  #existing(config: GatewayConfig, key: string): ResourceOf[K] {
    const object = this.#find(config, key);
    if (object === null) throw this.#missing(key);
    return object;
  }

  #missing(key: string): ApiError {
    return new ApiError(404, `${this.#kind.word} "${key}" does not exist`);
  }
}

/** A collection as the management API uses it. */
export type AnyResource = Pick<
  Resource<CollectionName, unknown>,
  "list" | "get" | "create" | "replace" | "patch" | "remove"
>;

/** The use cases of all collections: those of `own`, and for the others what their definitions say. */
export const createResources = <Own extends { readonly [K in CollectionName]?: AnyResource }>(
  changes: Changes,
  own: Own,
): ResourcesWith<Own> =>
  mapCollections(
    (collection) => own[collection] ?? new Resource(changes, { collection }),
  ) as unknown as ResourcesWith<Own>;

type ResourcesWith<Own> = {
  readonly [K in CollectionName]: K extends keyof Own ? Own[K] : Resource<K, ResourceOf[K]>;
};
