// The result of an import: objects whose ids are the same when the file is converted again. Knows no program.
import { createHash } from "node:crypto";
import { ApiError } from "../model/error.ts";
import { UUID_PATTERN } from "../model/fields.ts";
import type { CollectionName } from "../model/gateway-config.ts";
import type { PluginScope } from "../model/plugin.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { type Document, isDocument } from "../control/body.ts";
import { fitConfig } from "./plugin-fit.ts";
import type { Report } from "./report.ts";

/** An object of the result. */
export interface OutputObject {
  readonly collection: CollectionName;
  readonly id: string;
  /** `route "shop"` */
  readonly label: string;
  fields: Record<string, unknown>;
  /** Whether clients would gain access without it: a plugin, or a route that matches before others. */
  readonly protects: boolean;
  /** Ids of the objects that an application consists of: it is dropped when one of them is. */
  readonly parts: readonly string[];
}

/** Scope of a plugin, in ids of the result. */
export type OutputScope = Partial<PluginScope>;

/** A protection of the source that could not be imported, and the scope that loses it. */
export interface LostProtection {
  readonly scope: OutputScope;
  readonly what: string;
  /** Only routes that could match the requests of this one, which is not imported. */
  readonly missingRoute?: { readonly hosts: readonly string[]; readonly priority: number };
}

export interface PluginDraft {
  readonly name: string;
  readonly config: Document;
  readonly scope: OutputScope;
  /** Its name in the report. */
  readonly what: string;
  /** Unique in the source. */
  readonly key: string;
  /** Whether it denies access. */
  readonly protects?: boolean;
  readonly enabled?: boolean;
  /** Overrides the plugin's default priority. */
  readonly priority?: number;
  readonly when?: Document;
  readonly tags?: readonly string[];
}

export interface OutputOptions {
  /** Plugins of the gateway that imports the result. */
  readonly plugins: PluginCatalogue;
  /** Default: false. */
  readonly agreesTerms?: boolean;
}

const MAX_OBJECTS = 200_000;

/** Above all plugins. */
const OUTSIDE = 9900;

const forAll = (config: Document): Document => ({
  ...config,
  response: { ...(config["response"] as Document), gateway_responses: true },
});

export class Output {
  readonly #from: string;
  readonly #names = new Set<string>();
  readonly #ids = new Set<string>();
  readonly report: Report;
  readonly plugins: PluginCatalogue;
  /** Whether the user agrees to the terms of the CAs that the source uses. */
  readonly agreesTerms: boolean;
  readonly objects: OutputObject[] = [];
  readonly lostProtections: LostProtection[] = [];

  constructor(from: string, report: Report, options: OutputOptions) {
    this.#from = from;
    this.report = report;
    this.plugins = options.plugins;
    this.agreesTerms = options.agreesTerms ?? false;
  }

  /** The id of the object with this key in the source. */
  idOf(collection: CollectionName, key: string): string {
    const hash = createHash("sha256").update(`${this.#from} ${collection} ${key}`).digest("hex");
    // RFC 9562 section 5.8.
    return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-a${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
  }

  add(
    collection: CollectionName,
    {
      key,
      label,
      protects = false,
      parts = [],
    }: Pick<OutputObject, "label"> &
      Partial<Pick<OutputObject, "protects" | "parts">> & {
        /** Unique in the source. */
        readonly key: string;
      },
    fields: Document,
  ): string {
    let id = this.idOf(collection, key);
    for (let count = 2; this.#ids.has(id); count++)
      id = this.idOf(collection, `${key} again ${count}`);
    this.#ids.add(id);
    if (this.#ids.size > MAX_OBJECTS)
      throw new ApiError(400, `the configuration has more than ${MAX_OBJECTS} objects`);
    this.objects.push({ collection, id, label, protects, parts, fields: { ...fields } });
    return id;
  }

  /** A valid name, close to the wanted one and unique in all of the collections. */
  name(collections: CollectionName | readonly CollectionName[], wanted: string): string {
    const clean = wanted
      .replace(/^\*\./, "any.")
      .replaceAll(/[^A-Za-z0-9_.~ -]+/g, "-")
      // Of `shop.test /api` remains `shop.test api`.
      .replaceAll(/(?<= )-+|-+(?= )/g, "")
      .replaceAll(/ {2,}/g, " ")
      .replace(/^[^A-Za-z0-9_]+/, "")
      .slice(0, 100)
      .replace(/[^A-Za-z0-9_.~-]+$/, "");
    const base = clean === "" || UUID_PATTERN.test(clean) ? `${this.#from}-${clean}` : clean;
    const lists = [collections].flat();
    const isTaken = (name: string) => lists.some((list) => this.#names.has(`${list} ${name}`));
    let name = base.replace(/[^A-Za-z0-9_]+$/, "");
    for (let count = 2; isTaken(name); count++) name = `${base}-${count}`;
    for (const list of lists) this.#names.add(`${list} ${name}`);
    return name;
  }

  /** Adds a plugin with the fields that the gateway's version has; null, with a report entry, when the gateway lacks the plugin. */
  plugin(draft: PluginDraft): string | null {
    const { name, scope, what, key, protects = false, when = null, enabled = true } = draft;
    const isOutside = this.#changesResponses(draft);
    const { priority = isOutside ? OUTSIDE : null, tags = [] } = draft;
    const definition = this.plugins.get(name);
    if (definition === undefined) {
      this.report.omitted(what, `this gateway has no plugin ${name}`);
      if (protects && enabled) this.loseProtection({ scope, what });
      return null;
    }
    const fit = fitConfig(definition.config, isOutside ? forAll(draft.config) : draft.config);
    for (const field of fit.unknown)
      this.report.omitted(what, `the plugin ${name} has no field ${field}`);
    // The missing field may be the one that denies access.
    if (protects && enabled && fit.unknown.length > 0) this.loseProtection({ scope, what });
    const target = { key: `${name} ${key}`, label: what, protects: protects && enabled };
    this.report.imported(what, `became the plugin ${name}`);
    const fields = { name, config: fit.config, ...scope, priority, enabled, when, tags };
    return this.add("plugins", target, fields);
  }

  /** Whether it sets headers of responses, which sources set on their own redirects and errors, too. */
  #changesResponses({ name, config, priority }: PluginDraft): boolean {
    // The order of Caddy's handlers decides what they apply to.
    if (name !== "transform" || priority !== undefined) return false;
    if (this.#from === "haproxy" || this.#from === "caddy") return false;
    const { response } = config;
    const headers = isDocument(response) ? response["headers"] : null;
    return isDocument(headers) && Object.keys(headers).length > 0;
  }

  /** Closes the routes of the scope: the source protects them, the result does not. */
  loseProtection(loss: LostProtection): void {
    this.lostProtections.push(loss);
  }
}
