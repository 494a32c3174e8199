// The compiled configuration that the data plane serves, immutable and versioned; knows no database and no socket.
import type { CacheDirectory } from "../pdk/kit.ts";
import type { PluginCode } from "../pdk/definition.ts";
import type { CacheMemory } from "../shared-memory/cache/cache-memory.ts";
import type { Condition } from "../model/condition.ts";
import type { Consumer } from "../model/consumer.ts";
import type { Credential, CredentialAlgorithm, CredentialType } from "../model/credential.ts";
import type { Listener } from "../model/listener.ts";
import type { ScopeName } from "../model/plugin.ts";
import type { Route } from "../model/route.ts";
import type { Service } from "../model/service.ts";
import type { Settings } from "../model/settings.ts";
import type { StreamRoute } from "../model/stream-route.ts";
import type { Target } from "../model/target.ts";
import type { RecordTable } from "../shared-memory/record-reader.ts";
import type { RouteTable } from "./route-records.ts";

/** A service with its enabled targets, oldest first. */
export interface ServicePlan {
  readonly id: string;
  readonly service: Service;
  /** PEM chain and key of the client certificate for targets; null: none. */
  readonly clientCertificate: { readonly cert: string; readonly key: string } | null;
  readonly targets: readonly Target[];
}

/** A certificate with the names for which the gateway presents it, and no other. */
export interface CertificatePlan {
  readonly id: string;
  /** Host names, `*.` for one label. */
  readonly names: readonly string[];
  /** PEM chain and key. */
  readonly cert: string;
  readonly key: string;
}

/** An enabled stream route with the ports that it listens on. */
export interface StreamRoutePlan {
  readonly id: string;
  readonly route: StreamRoute;
  readonly ports: readonly number[];
  /** Certificate for names without one of their own, or for all; null unless the gateway terminates TLS. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

/** An enabled instance of a plugin, with its configuration as its handlers get it. */
export interface PluginPlan {
  readonly id: string;
  /** Which plugin. */
  readonly name: string;
  readonly label: string | null;
  readonly scope: ScopeName;
  readonly serviceId: string | null;
  readonly routeId: string | null;
  readonly consumerId: string | null;
  readonly streamRouteId: string | null;
  /** Secrets in the clear, defaults filled in. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Null: the plugin's own order. */
  readonly priority: number | null;
  readonly when: Condition | null;
  readonly onError: "open" | "closed" | null;
  /** RFC 3339; of two with the same order the older one runs first. */
  readonly createdAt: string;
  /** Of a plugin from a directory; absent: it is built in. */
  readonly code?: PluginCode;
  /** The store of the instance, which the supervisor creates on the way to the workers. */
  readonly cache?: CacheMemory;
  /** Its files. */
  readonly cacheDirectory?: CacheDirectory;
  /** The channel of its feed, also from the supervisor. */
  readonly feed?: string;
}

/** An enabled consumer. */
export interface ConsumerPlan {
  readonly id: string;
  readonly username: string;
  readonly customId: string | null;
  readonly groups: readonly string[];
}

/** An enabled credential, its shared secret in the clear. */
export interface CredentialPlan {
  readonly id: string;
  readonly consumerId: string;
  readonly type: CredentialType;
  readonly name: string | null;
  readonly identifier: string | null;
  readonly algorithm: CredentialAlgorithm | null;
  readonly publicKey: string | null;
  /** Milliseconds since 1970; null: never. */
  readonly expiresAt: number | null;
  readonly hash: string | null;
  readonly secret: string | null;
  readonly previous: {
    readonly hash: string | null;
    readonly secret: string | null;
    readonly until: number;
  } | null;
}

/**
 * Consumers and their credentials as they are configured: there may be too many for a second form in memory, or for a copy in
 * each worker.
 */
export interface ConsumerSource {
  readonly consumers: ReadonlyMap<string, Consumer>;
  readonly credentials: ReadonlyMap<string, Credential>;
  /** Decrypts a shared secret. */
  readonly openSealed: (sealed: string) => string;
  /** Changes since the snapshot of the revision `base`; null: everything. */
  readonly change: {
    readonly base: number;
    readonly consumers: LargeChange<Consumer>;
    readonly credentials: LargeChange<Credential>;
  } | null;
}

/** An enabled listener with what it needs to bind. */
export interface ListenerPlan {
  readonly id: string;
  readonly listener: Listener;
  /** PEM chain and key of the default certificate; null for plain listeners. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** Whether this machine cannot listen on its port at present. Absent: it can. */
  readonly isUnbound?: boolean;
}

/**
 * One version of everything a worker serves. Entities are shared between snapshots: an entity that did not change is the
 * same object, and only changed ones cross to the workers.
 */
export interface Snapshot {
  readonly revision: number;
  readonly services: ReadonlyMap<string, ServicePlan>;
  /** As they are configured, including disabled ones: there may be too many for a second form. */
  readonly routes: ReadonlyMap<string, Route>;
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
  readonly streamRoutes: ReadonlyMap<string, StreamRoutePlan>;
  readonly plugins: ReadonlyMap<string, PluginPlan>;
  readonly consumers: ConsumerSource;
  readonly settings: Settings;
}

/** The difference of two versions of one collection. */
export interface CollectionChange<T> {
  readonly upserts: readonly T[];
  readonly removals: readonly string[];
}

/** The same for a collection that may be very large. */
export interface LargeChange<T> {
  /** The collection was empty before; iterating creates the objects one by one. */
  readonly isWhole: boolean;
  readonly upserts: Iterable<T> & { readonly length: number };
  readonly removals: readonly string[];
}

/** A change of routes in memory that all workers read. */
export interface StoredRoutes extends CollectionChange<number> {
  /** The records; null when no route changed. `upserts` are positions in it. */
  readonly table: RouteTable | null;
}

/** What a worker gets of each collection. Of a route, that is the position of its record. */
export interface PlanOf {
  readonly services: ServicePlan;
  readonly routes: number;
  readonly listeners: ListenerPlan;
  readonly certificates: CertificatePlan;
  readonly streamRoutes: StreamRoutePlan;
  readonly plugins: PluginPlan;
}

/** A part of a change that fits one message; plain data that can be posted to a thread. */
export type SnapshotPiece = { readonly [K in keyof PlanOf]: CollectionChange<PlanOf[K]> } & {
  /** The records of the routes; null when no route changes. */
  readonly routeTable: RouteTable | null;
};

/** The change from one snapshot to the next; with `base` null the whole snapshot. */
export type SnapshotChange = SnapshotPiece & {
  readonly base: number | null;
  readonly revision: number;
  /** All consumers, in shared memory; null when neither they nor their credentials changed. */
  readonly consumers: RecordTable | null;
  /** Absent when unchanged. */
  readonly settings: Settings | null;
};
