// Purges cached responses in all workers; knows neither HTTP nor the cache.
import { normalizeHost } from "../http/authority.ts";
import { canonicalPath } from "../http/request-target.ts";
import { cachePurgeInput } from "../model/cache-purge.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import type { WorkerAnswer, WorkerQuestion } from "../snapshot/message.ts";
import type { AuditSink } from "./audit-entry.ts";
import type { Changes } from "./change.ts";
import { findByKey } from "./key.ts";
import type { Actor } from "./principal.ts";

/** Sends a command to every serving or starting worker; throws when one of them does not confirm. */
export type Broadcast = (question: WorkerQuestion) => Promise<readonly WorkerAnswer[]>;

type Purge = Extract<WorkerQuestion, { readonly kind: "purge" }>["which"];

export class CachePurge {
  readonly #changes: Changes;
  readonly #audit: AuditSink;
  readonly #broadcast: Broadcast;

  constructor(
    parts: { readonly changes: Changes; readonly audit: AuditSink },
    broadcast: Broadcast,
  ) {
    this.#changes = parts.changes;
    this.#audit = parts.audit;
    this.#broadcast = broadcast;
  }

  /** Resolves to the number of purged responses when no worker serves them any more. */
  async purge(body: unknown, actor: Actor): Promise<{ readonly purged: number }> {
    const { plugin_id: key, ...input } = decode(cachePurgeInput, body === undefined ? {} : body);
    const which = whichOf(input);
    const plugin = key === undefined ? null : findByKey(this.#changes.config.plugins, key);
    if (key !== undefined && plugin === null)
      throw invalid("plugin_id", `plugin "${key}" does not exist`);
    const purged = await this.#purgeAll({ pluginId: plugin?.id ?? null, which });
    const { actor: name, method, address } = actor;
    this.#audit.record({
      actor: name,
      method,
      address,
      action: "purge",
      kind: "cache",
      object_id: plugin?.id ?? null,
      object_name: plugin?.label ?? null,
      result: "ok",
      revision: null,
      detail: { ...input, purged },
    });
    return { purged };
  }

  async #purgeAll(what: { readonly pluginId: string | null; readonly which: Purge }) {
    try {
      const answers = await this.#broadcast({ kind: "purge", ...what });
      return answers.reduce<number>(
        (sum, answer) => sum + (typeof answer === "number" ? answer : 0),
        0,
      );
    } catch (cause) {
      // A hanging worker is replaced soon and starts with an empty cache.
      throw new ApiError(500, "a worker did not confirm the purge in time; try again", { cause });
    }
  }
}

function whichOf(input: { key?: string; prefix?: string; tag?: string }): Purge {
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
  const host = authority === "" ? "" : normalizeHost(authority);
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
