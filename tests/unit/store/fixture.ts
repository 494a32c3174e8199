// Data directories and configurations for tests of the store.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../../src/log.ts";
import { decode } from "../../../src/model/decode.ts";
import {
  type ConfigChange,
  mapCollections,
  type ResourceChange,
} from "../../../src/model/gateway-config.ts";
import { type Route, routeInput } from "../../../src/model/route.ts";
import { pathMatchOf } from "../../../src/model/route-match.ts";
import { type Service, serviceInput } from "../../../src/model/service.ts";
import { type SettingsInput, settingsInput } from "../../../src/model/settings.ts";
import { type Target, targetInput } from "../../../src/model/target.ts";
import { firstConfiguration } from "../../../src/store/first-configuration.ts";
import type { Commit } from "../../../src/store/commit.ts";
import { Store } from "../../../src/store/store.ts";

export const at = "2026-01-01T00:00:00.000Z";

/** A temporary directory, deleted when the test ends. */
export function temporaryDirectory(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "sluice-store-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Opens a store and keeps what it logs. */
export function openStore(dataDir: string) {
  const log: { level: string; message: string; [field: string]: unknown }[] = [];
  const store = Store.open({
    dataDir,
    log: createLog({ level: "debug", format: "json", sink: (line) => log.push(JSON.parse(line)) }),
  });
  return { store, log, [Symbol.dispose]: () => store.close() };
}

/** Each object is a second younger than the one that a test made before it. */
const ages = new Map<string, string>();
const identity = (id: string) => {
  const created = ages.get(id) ?? new Date(Date.parse(at) + ages.size * 1000).toISOString();
  ages.set(id, created);
  return { id, created_at: created, updated_at: at };
};
const toId = (name: string) => Bun.randomUUIDv5(name, "dns");

export const serviceOf = (name: string): Service => ({
  ...identity(toId(name)),
  ...decode(serviceInput, { name }),
});

export const targetOf = (service: Service, port: number): Target => ({
  ...identity(toId(`${service.name}:${port}`)),
  ...decode(targetInput, { service_id: service.id, host: "10.0.0.1", port }),
});

export function routeOf(name: string, service: Service | null): Route {
  const input = { name, service_id: service?.id ?? null, paths: ["/a", "=/b", "~^/c"] };
  const fields = decode(routeInput, input);
  return { ...identity(toId(`route ${name}`)), ...fields, paths: fields.paths.map(pathMatchOf) };
}

export const settingsOf = (input: unknown = {}) => ({
  ...(decode(settingsInput, input) as SettingsInput),
  updated_at: at,
});

const unchanged: ResourceChange<never> = { upserts: [], removals: [] };

export const upsert = <T>(...upserts: T[]): ResourceChange<T> => ({ upserts, removals: [] });
export const removal = (...removals: string[]): ResourceChange<never> => ({
  upserts: [],
  removals,
});

export function changeOf(change: Partial<ConfigChange> = {}): ConfigChange {
  return {
    ...mapCollections(() => unchanged),
    settings: null,
    sso: null,
    ...change,
  };
}

export const commitOf = (revision: number, change: Partial<ConfigChange> = {}): Commit => ({
  revision,
  change: changeOf(change),
  entry: { at, actor: "test", summary: `revision ${revision}` },
});

const first = firstConfiguration(
  { http: { hostname: "127.0.0.1", port: 8080 }, https: { hostname: "::1", port: 8443 } },
  at,
);
export const firstCommit: Commit = commitOf(1, {
  listeners: upsert(...first.listeners.values()),
  settings: first.settings,
});
