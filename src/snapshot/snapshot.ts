// What the data plane is given to serve: the compiled configuration, immutable and versioned; knows no database and no socket.
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

/** A service with the targets that may take its traffic, oldest first; disabled targets are left out. */
export interface ServicePlan {
  readonly id: string;
  readonly service: Service;
  /** PEM chain and key to show to targets that speak TLS; null: none. */
  readonly clientCertificate: { readonly cert: string; readonly key: string } | null;
  readonly targets: readonly Target[];
}

/** A certificate with the names that it is presented for; no other one is presented for them. */
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
  /** For names that no certificate is there for, or for all of them; null unless TLS ends here. */
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
  /** Secrets in the clear, every field there. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Null: the plugin's own place in the order. */
  readonly priority: number | null;
  readonly when: Condition | null;
  readonly onError: "open" | "closed" | null;
  /** RFC 3339; of two with one place in the order the older one comes first. */
  readonly createdAt: string;
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
 * Consumers and their credentials as they are configured: there may be so many that neither a second form of them is kept
 * nor a copy in each worker.
 */
export interface ConsumerSource {
  readonly consumers: ReadonlyMap<string, Consumer>;
  readonly credentials: ReadonlyMap<string, Credential>;
  /** Decrypts a shared secret. */
  readonly openSealed: (sealed: string) => string;
  /** What is new since the snapshot of the revision `base`; null: everything. */
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
  /** PEM chain and key for names that no certificate is there for; null for plain listeners. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
}

/**
 * One version of everything a worker serves. Entities are shared between snapshots: an entity that did not change is the
 * same object, and only changed ones cross to the workers.
 */
export interface Snapshot {
  readonly revision: number;
  readonly services: ReadonlyMap<string, ServicePlan>;
  /** As they are configured, those that are switched off among them: there may be too many for a second form. */
  readonly routes: ReadonlyMap<string, Route>;
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
  readonly streamRoutes: ReadonlyMap<string, StreamRoutePlan>;
  readonly plugins: ReadonlyMap<string, PluginPlan>;
  readonly consumers: ConsumerSource;
  readonly settings: Settings;
}

/** What differs between two versions of one collection. */
export interface CollectionChange<T> {
  readonly upserts: readonly T[];
  readonly removals: readonly string[];
}

/** The same of a collection that may be very large. */
export interface LargeChange<T> {
  /** Nothing was there before: objects are made one by one while they are walked over. */
  readonly isWhole: boolean;
  readonly upserts: Iterable<T> & { readonly length: number };
  readonly removals: readonly string[];
}

/** A change of routes as it is written into memory that all workers read. */
export interface StoredRoutes extends CollectionChange<number> {
  /** Where the records are; null when no route changed. `upserts` are positions in it. */
  readonly table: RouteTable | null;
}

/** What of each collection crosses to a worker. Of a route, that is where its record is. */
export interface PlanOf {
  readonly services: ServicePlan;
  readonly routes: number;
  readonly listeners: ListenerPlan;
  readonly certificates: CertificatePlan;
  readonly streamRoutes: StreamRoutePlan;
  readonly plugins: PluginPlan;
}

/** As much of a change as a worker is given at a time; plain data that can be posted to a thread. */
export type SnapshotPiece = { readonly [K in keyof PlanOf]: CollectionChange<PlanOf[K]> } & {
  /** Where the records of the routes are; null when no route changes. */
  readonly routeTable: RouteTable | null;
};

/** What turns one snapshot into the next. From nothing (`base` null) it is the whole. */
export type SnapshotChange = SnapshotPiece & {
  readonly base: number | null;
  readonly revision: number;
  /** All of them, in memory that is shared; null when neither they nor their credentials changed. */
  readonly consumers: RecordTable | null;
  /** Absent when unchanged. */
  readonly settings: Settings | null;
};
