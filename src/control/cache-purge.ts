// Purges cached responses, in a fleet of all nodes; knows neither HTTP nor the cache.
import { normalizeHost } from "../http/authority.ts";
import { canonicalPath } from "../http/request-target.ts";
import { cachePurgeInput, type Purge } from "../model/cache-purge.ts";
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import type { Fact } from "../model/fact.ts";
import type { AuditSink } from "./audit-entry.ts";
import type { Changes } from "./change.ts";
import { OlderNodes } from "./change-contract.ts";
import type { FleetView } from "./fleet-view.ts";
import { findByKey } from "./key.ts";
import type { Actor } from "./principal.ts";
import { storedNameOf } from "../model/host-name.ts";

/** Purges the caches of this gateway; resolves to the number of responses when no worker serves them any more. */
export type PurgeCaches = (
  pluginId: string | null,
  which: Purge,
  how: { readonly soft: boolean },
) => Promise<number>;

type PurgeFact = Extract<Fact, { readonly kind: "cache_purged" | "cache_soft_purged" }>;

export interface CachePurgeOptions {
  readonly changes: Changes;
  readonly audit: AuditSink;
  readonly purgeCaches: PurgeCaches;
  /** The other nodes with these caches; absent: there are none. */
  readonly fleet?: FleetView;
}

export class CachePurge {
  readonly #options: CachePurgeOptions;
  /** Of this node. */
  readonly #first = new WeakMap<Fact, Promise<number>>();

  constructor(options: CachePurgeOptions) {
    this.#options = options;
    if (options.fleet === undefined) return;
    options.changes.onFact((fact) =>
      fact.kind === "cache_purged" || fact.kind === "cache_soft_purged"
        ? this.#apply(fact)
        : undefined,
    );
  }

  /**
   * Resolves to the number of purged responses when this gateway serves them no more. In a fleet it is an entry of
   * the log, which each node applies; with a `warning`, beside nodes of an older version only this one purges.
   */
  async purge(
    body: unknown,
    actor: Actor,
  ): Promise<{ readonly purged: number; readonly warning?: string }> {
    const {
      plugin_id: key,
      soft = false,
      ...input
    } = decode(cachePurgeInput, body === undefined ? {} : body);
    const which = whichOf(input);
    const { changes, audit, fleet } = this.#options;
    const decide = () => {
      const plugin = key === undefined ? null : findByKey(changes.config.plugins, key);
      if (key !== undefined && plugin === null)
        throw invalid("plugin_id", `plugin "${key}" does not exist`);
      const kind = soft ? "cache_soft_purged" : "cache_purged";
      const fact: PurgeFact = { kind, plugin_id: plugin?.id ?? null, which };
      return { value: { plugin, fact }, facts: [fact] };
    };
    let warning: string | null = null;
    const here = (error: unknown) => {
      if (!(error instanceof OlderNodes)) throw error;
      warning = `purged ${error.onlyHere}`;
      return decide().value;
    };
    const { plugin, fact } =
      fleet === undefined ? decide().value : await changes.record(decide, actor).catch(here);
    const purged = await (this.#first.get(fact) ?? this.#purgeAll(fact));
    const { actor: name, method, address } = actor;
    audit.record({
      actor: name,
      method,
      address,
      action: "purge",
      kind: "cache",
      object_id: plugin?.id ?? null,
      object_name: plugin?.label ?? null,
      result: "ok",
      revision: null,
      detail: { ...input, ...(soft ? { soft } : {}), purged },
    });
    return warning === null ? { purged } : { purged, warning };
  }

  /** Resolves when the caches are purged: until then this node does not count as having done so. */
  async #apply(fact: PurgeFact): Promise<void> {
    const first = this.#purgeAll(fact);
    this.#first.set(fact, first);
    await first;
  }

  #purgeAll({ kind, plugin_id: pluginId, which }: PurgeFact): Promise<number> {
    return this.#options.purgeCaches(pluginId, which, { soft: kind === "cache_soft_purged" });
  }
}

function whichOf(input: { key?: string; prefix?: string; tag?: string }): PurgeFact["which"] {
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  const [first, second] = given;
  if (second !== undefined) throw invalid(second[0], `cannot be combined with ${first?.[0]}`);
  if (input.tag !== undefined) return { by: "tag", value: input.tag };
  if (input.key !== undefined) return { by: "key", value: normalized("key", input.key) };
  if (input.prefix !== undefined)
    return { by: "prefix", value: normalized("prefix", input.prefix) };
  return { by: "all" };
}

/** In the form of cache keys: lower-case host without port, canonical path, the query as browsers send it. */
function normalized(field: string, text: string): string {
  const plain = text.replace(/^https?:\/\//i, "");
  const slash = plain.indexOf("/");
  const authority = slash < 0 ? plain : plain.slice(0, slash);
  const rest = slash < 0 ? "" : plain.slice(slash);
  const host = authority === "" ? "" : normalizeHost(storedNameOf(authority));
  if (host === null) throw invalid(field, "must be host/path, or /path for any host");
  if (rest === "" && field === "key") return `${host}/`;
  return host + asRequested(rest, field === "prefix");
}

/** As in a request: with non-ASCII characters and spaces escaped, without dot segments and fragment. */
function asRequested(text: string, isPrefix: boolean): string {
  // A prefix may end inside of a segment: `/docs/.` means `/docs/.well-known`, and not all of `/docs/`.
  const isCut = isPrefix && /\/(?:\.|%2e){1,2}$/i.test(text);
  const url = text === "" || isCut ? null : URL.parse(`http://host${text}`);
  if (url === null) return text;
  const { pathname, search } = url;
  return (canonicalPath(pathname) ?? pathname) + search;
}
