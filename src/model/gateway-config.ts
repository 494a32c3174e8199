// The whole desired state as plain data, keyed by id; knows nothing of how it is stored or served.
import { acmeAccounts } from "./acme-account.ts";
import { alerts } from "./alert.ts";
import { applications } from "./application.ts";
import { certificates } from "./certificate.ts";
import { consumers } from "./consumer.ts";
import { credentials } from "./credential.ts";
import { dnsProviders } from "./dns-provider.ts";
import type { Identity } from "./fields.ts";
import { listeners } from "./listener.ts";
import { plugins } from "./plugin.ts";
import type { LargeResourceDefinition, ReferenceField, ResourceDefinition } from "./resource.ts";
import { routes } from "./route.ts";
import { secrets } from "./secret.ts";
import { services } from "./service.ts";
import type { Settings } from "./settings.ts";
import type { Sso } from "./sso.ts";
import { streamRoutes } from "./stream-route.ts";
import { targets } from "./target.ts";
import { tokens } from "./token.ts";
import { users } from "./user.ts";

/** The definition of each collection, referenced collections before those that refer to them. */
const resources = {
  services,
  targets,
  routes,
  listeners,
  acme_accounts: acmeAccounts,
  dns_providers: dnsProviders,
  certificates,
  stream_routes: streamRoutes,
  applications,
  consumers,
  credentials,
  plugins,
  alerts,
  users,
  tokens,
  secrets,
};

/** The collections of a GatewayConfig. */
export type CollectionName = keyof typeof resources;

/** What one element of each collection is. */
export type ResourceOf = {
  readonly [K in CollectionName]: (typeof resources)[K] extends ResourceDefinition<infer T>
    ? T
    : never;
};

/** The collections that may be very large. */
export type LargeName = {
  [K in CollectionName]: (typeof resources)[K] extends LargeResourceDefinition<infer _> ? K : never;
}[CollectionName];

/** All of them, in their order. */
export const collectionNames = Object.keys(resources) as readonly CollectionName[];

/** A reference field of a collection. */
export interface Reference extends ReferenceField {
  readonly to: CollectionName;
}

interface AnyDefinition extends ResourceDefinition<Identity> {
  readonly references: readonly Reference[];
}

/** The definition of a collection, for code that treats all collections alike. */
export const definitionOf = (name: CollectionName): AnyDefinition =>
  resources[name] as unknown as AnyDefinition;

/** Its path below `/api/v1`: `dns-providers`. */
export const pathOf = (name: CollectionName): string =>
  definitionOf(name).api.path ?? name.replaceAll("_", "-");

/** How a very large collection is stored; null: plain. */
export function largeFactsOf<K extends CollectionName>(
  name: K,
): LargeResourceDefinition<ResourceOf[K]>["large"] | null {
  const definition = resources[name] as unknown as Partial<LargeResourceDefinition<ResourceOf[K]>>;
  return definition.large ?? null;
}

/** Objects of which there is exactly one each. */
export interface SingletonOf {
  readonly settings: Settings;
  readonly sso: Sso;
}

export type SingletonName = keyof SingletonOf;

export const singletonNames = ["settings", "sso"] as const satisfies readonly SingletonName[];

/**
 * The whole configuration, in order of creation. Objects are immutable: a change makes a new object, so equal references
 * mean "unchanged".
 */
export type GatewayConfig = {
  readonly [K in CollectionName]: ReadonlyMap<string, ResourceOf[K]>;
} & SingletonOf;

/** The difference between two versions of one collection of the GatewayConfig. */
export interface ResourceChange<T> {
  readonly upserts: readonly T[];
  readonly removals: readonly string[];
}

/** The rows that turn one GatewayConfig into the next; null for a singleton that is unchanged. */
export type ConfigChange = {
  readonly [K in CollectionName]: ResourceChange<ResourceOf[K]>;
} & { readonly [K in SingletonName]: SingletonOf[K] | null };

/** A value for each collection. */
export function mapCollections<T>(make: (name: CollectionName) => T): Record<CollectionName, T> {
  return Object.fromEntries(collectionNames.map((name) => [name, make(name)])) as Record<
    CollectionName,
    T
  >;
}

/** The change that writes a configuration from nothing. */
export function wholeOf(config: GatewayConfig): ConfigChange {
  const collections = mapCollections((name): ResourceChange<unknown> => ({
    upserts: [...config[name].values()],
    removals: [],
  }));
  return {
    ...(collections as Pick<ConfigChange, CollectionName>),
    settings: config.settings,
    sso: config.sso,
  };
}
