// The settings of the gateway, a singleton; no HTTP words.
import * as files from "node:fs/promises";
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import { mergePatch } from "../model/merge-patch.ts";
import { type Settings, settingsInput } from "../model/settings.ts";
import { GeoDatabaseError, type GeoKind, openGeoDatabase } from "../net/geo-database.ts";
import { isDocument } from "./body.ts";
import type { AdminNetworks } from "./admin-network.ts";
import type { Changes } from "./change.ts";
import { requireConditions, tagOf } from "./representation.ts";
import type { Read, WriteOptions, Written } from "./resource.ts";

export interface SettingsView extends Settings {
  /** Networks that may use the management API: `admin_allowed_cidrs`, or else those of the start. */
  readonly admin_allowed_in_force: readonly string[];
}

export class SettingsUseCases {
  readonly #changes: Changes;
  readonly #adminNetworks: AdminNetworks;

  constructor(changes: Changes, adminNetworks: AdminNetworks) {
    this.#changes = changes;
    this.#adminNetworks = adminNetworks;
  }

  get(): Read<SettingsView> {
    const { settings } = this.#changes.config;
    return { view: this.#view(settings), tag: tagOf(settings) };
  }

  replace(body: unknown, options: WriteOptions): Promise<Written<SettingsView>> {
    return this.#write(options, () => plain(body));
  }

  /** RFC 7396: members of `patch` replace those of the settings, null restores the default. */
  patch(patch: unknown, options: WriteOptions): Promise<Written<SettingsView>> {
    return this.#write(options, (old) => mergePatch(plain(old), plain(patch)));
  }

  async #write(
    options: WriteOptions,
    documentOf: (old: Settings) => unknown,
  ): Promise<Written<SettingsView>> {
    const { settings: present } = this.#changes.config;
    await requireGeoDatabases(documentOf(present), present);
    const { value, revision, warnings } = await this.#changes.run({
      ...options,
      mutate: (draft) => {
        const old = draft.config.settings;
        requireConditions(options.conditions, old);
        const same = { ...decode(settingsInput, documentOf(old)), updated_at: old.updated_at };
        draft.summary = "update settings";
        if (Bun.deepEquals(same, old)) return old;
        const settings = { ...same, updated_at: draft.stamp() };
        draft.putSingleton("settings", settings);
        return settings;
      },
    });
    return { view: this.#view(value), tag: tagOf(value), revision, warnings };
  }

  #view(settings: Settings): SettingsView {
    return { ...settings, admin_allowed_in_force: this.#adminNetworks.inForce(settings) };
  }
}

const geoFields = { country_db: "country", asn_db: "asn" } as const satisfies Record<
  string,
  GeoKind
>;

/**
 * Checks newly configured database files, only once: a file that breaks later must not block other changes.
 */
async function requireGeoDatabases(document: unknown, { geoip }: Settings): Promise<void> {
  const { geoip: named } = document as { readonly geoip?: Readonly<Record<string, unknown>> };
  for (const [field, kind] of Object.entries(geoFields)) {
    const path = named?.[field];
    if (typeof path !== "string" || path === geoip[field as keyof typeof geoFields]) continue;
    await openGeoDatabase(path, kind, files).catch((error: unknown) => {
      if (error instanceof GeoDatabaseError) throw invalid(`geoip.${field}`, error.message);
      throw error;
    });
  }
}

/** The document without fields that the gateway sets. */
function plain(body: unknown): unknown {
  if (!isDocument(body)) throw invalid("", "body must be a JSON object");
  const { updated_at: _, admin_allowed_in_force: __, ...rest } = body;
  return rest;
}
