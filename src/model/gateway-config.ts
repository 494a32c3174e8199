// The whole desired state as plain data, keyed by id; knows nothing of how it is stored or served.
import type { AcmeAccount } from "./acme-account.ts";
import type { Alert } from "./alert.ts";
import type { Application } from "./application.ts";
import type { Certificate } from "./certificate.ts";
import type { Consumer } from "./consumer.ts";
import type { Credential } from "./credential.ts";
import type { DnsProvider } from "./dns-provider.ts";
import type { Listener } from "./listener.ts";
import type { Plugin } from "./plugin.ts";
import type { Route } from "./route.ts";
import type { Secret } from "./secret.ts";
import type { Service } from "./service.ts";
import type { Settings } from "./settings.ts";
import type { Sso } from "./sso.ts";
import type { StreamRoute } from "./stream-route.ts";
import type { Target } from "./target.ts";
import type { Token } from "./token.ts";
import type { User } from "./user.ts";

/** What one element of each collection is. */
export interface ResourceOf {
  readonly services: Service;
  readonly targets: Target;
  readonly routes: Route;
  readonly stream_routes: StreamRoute;
  readonly listeners: Listener;
  readonly certificates: Certificate;
  readonly acme_accounts: AcmeAccount;
  readonly dns_providers: DnsProvider;
  readonly applications: Application;
  readonly consumers: Consumer;
  readonly credentials: Credential;
  readonly plugins: Plugin;
  readonly alerts: Alert;
  readonly users: User;
  readonly tokens: Token;
  readonly secrets: Secret;
}

/** The collections of a GatewayConfig. */
export type CollectionName = keyof ResourceOf;

/** All of them, referenced collections before those that refer to them. */
export const collectionNames = [
  "services",
  "targets",
  "routes",
  "listeners",
  "acme_accounts",
  "dns_providers",
  "certificates",
  "stream_routes",
  "applications",
  "consumers",
  "credentials",
  "plugins",
  "alerts",
  "users",
  "tokens",
  "secrets",
] as const satisfies readonly CollectionName[];

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
