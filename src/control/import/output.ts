// The document that an import makes: objects with ids that stay the same when the file is converted again. Knows no program.
import { createHash } from "node:crypto";
import { ApiError } from "../../model/error.ts";
import { UUID_PATTERN } from "../../model/fields.ts";
import type { CollectionName } from "../../model/gateway-config.ts";
import type { PluginScope } from "../../model/plugin.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import type { Document } from "../body.ts";
import { fitConfig } from "./plugin-fit.ts";
import type { Report } from "./report.ts";

/** An object of the document. */
export interface Made {
  readonly collection: CollectionName;
  readonly id: string;
  /** `route "shop"` */
  readonly label: string;
  fields: Record<string, unknown>;
  /** Whether what it keeps out would come in without it: a plugin, or a route in front of others. */
  readonly protects: boolean;
}

/** Where a plugin applies, in ids of the document. */
export type MadeScope = Partial<PluginScope>;

/** What loses a protection of the source, and which one. */
export interface Loss {
  readonly scope: MadeScope;
  readonly what: string;
  /** Only routes that could take the requests of this one, which is gone. */
  readonly instead?: { readonly hosts: readonly string[]; readonly priority: number };
}

export interface PluginDraft {
  readonly name: string;
  readonly config: Document;
  readonly scope: MadeScope;
  /** What it is in the source, in words. */
  readonly what: string;
  /** Tells it from others of the source. */
  readonly key: string;
  /** Whether it keeps somebody out. */
  readonly protects?: boolean;
  readonly enabled?: boolean;
  /** In the place of the plugin's own in the order. */
  readonly priority?: number;
  readonly when?: Document;
  readonly tags?: readonly string[];
}

const MAX_OBJECTS = 200_000;

export class Output {
  readonly #from: string;
  readonly #names = new Set<string>();
  readonly #ids = new Set<string>();
  readonly report: Report;
  readonly plugins: PluginCatalogue;
  readonly made: Made[] = [];
  readonly losses: Loss[] = [];

  constructor(from: string, report: Report, plugins: PluginCatalogue) {
    this.#from = from;
    this.report = report;
    this.plugins = plugins;
  }

  /** The id of what has this key in the source. */
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
    }: { readonly key: string; readonly label: string; readonly protects?: boolean },
    fields: Document,
  ): string {
    let id = this.idOf(collection, key);
    for (let count = 2; this.#ids.has(id); count++)
      id = this.idOf(collection, `${key} again ${count}`);
    this.#ids.add(id);
    if (this.#ids.size > MAX_OBJECTS)
      throw new ApiError(400, `the configuration makes more than ${MAX_OBJECTS} objects`);
    this.made.push({ collection, id, label, protects, fields: { ...fields } });
    return id;
  }

  /** A unique name that the gateway takes, as near to the wanted one as can be. */
  name(collection: CollectionName, wanted: string): string {
    const clean = wanted
      .replace(/^\*\./, "any.")
      .replaceAll(/[^A-Za-z0-9_.~ -]/g, "-")
      .replace(/^[^A-Za-z0-9_]+/, "")
      .slice(0, 100)
      .replace(/[^A-Za-z0-9_.~-]+$/, "");
    const base = clean === "" || UUID_PATTERN.test(clean) ? `${this.#from}-${clean}` : clean;
    let name = base.replace(/[^A-Za-z0-9_]+$/, "");
    for (let count = 2; this.#names.has(`${collection} ${name}`); count++)
      name = `${base}-${count}`;
    this.#names.add(`${collection} ${name}`);
    return name;
  }

  /** Adds a plugin as far as the gateway has it; null when it has not, which is reported. */
  plugin(draft: PluginDraft): string | null {
    const { name, scope, what, key, protects = false, when = null, enabled = true } = draft;
    const { priority = null, tags = [] } = draft;
    const definition = this.plugins.get(name);
    if (definition === undefined) {
      this.report.leftOut(what, `this gateway has no plugin ${name}`);
      if (protects && enabled) this.lose({ scope, what });
      return null;
    }
    const fit = fitConfig(definition.config, draft.config);
    for (const field of fit.unknown)
      this.report.leftOut(what, `the plugin ${name} has no field ${field}`);
    // What it would keep out may be said in the field that is missing.
    if (protects && enabled && fit.unknown.length > 0) this.lose({ scope, what });
    const target = { key: `${name} ${key}`, label: what, protects: protects && enabled };
    this.report.carried(what, `became the plugin ${name}`);
    const fields = { name, config: fit.config, ...scope, priority, enabled, when, tags };
    return this.add("plugins", target, fields);
  }

  /** Whatever the scope takes in has a protection in the source that it lacks here. */
  lose(loss: Loss): void {
    this.losses.push(loss);
  }
}
