// What a change writes beside the configuration, as data: every store can write it, at any time; knows no store.
import type { Purge } from "./cache-purge.ts";
import type { RootConstraints } from "./local-ca.ts";

/** A second factor as it is stored. */
export interface StoredSecondFactor {
  readonly user_id: string;
  /** The shared key, sealed. */
  readonly sealed_key: string;
  /** Whether the user has confirmed it with a code; until then none is required. */
  readonly confirmed: boolean;
  /** The time step of the last used code: that code and earlier ones are invalid. */
  readonly last_step: number;
  /** SHA-256, hexadecimal, of the unused recovery codes. */
  readonly recovery_hashes: readonly string[];
}

export interface StoredAdminToken {
  /** SHA-256, hexadecimal. */
  readonly token_hash: string;
  /** RFC 3339, UTC. */
  readonly created_at: string;
}

/** The root of the local CA as it is stored. */
export interface StoredLocalCa {
  /** PEM. */
  readonly certificate: string;
  /** Its private key, encrypted. */
  readonly sealed_key: string;
  readonly constraints: RootConstraints;
}

/** A session of the management API as it is stored: of the cookie only the SHA-256, hexadecimal. */
export interface StoredSession {
  readonly id: string;
  readonly user_id: string;
  readonly method: "password" | "sso";
  /** RFC 3339, UTC, as are all times. */
  readonly created_at: string;
  readonly expires_at: string;
  /** Of the socket that signed in. */
  readonly address: string;
  readonly user_agent: string;
  readonly token_hash: string;
}

/** An entry of the audit log that belongs to no change. */
export interface StoredAuditEntry {
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  readonly method: string;
  readonly address: string;
  readonly action: string;
  readonly kind: string;
  readonly object_id: string | null;
  readonly object_name: string | null;
  readonly result: string;
  readonly revision: null;
  readonly detail: unknown;
}

/** A failed sign-in for the login throttle. */
export interface LoginFailure {
  /** HMAC of the network or of the account. */
  readonly key: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

/** An override of a target's health. */
export interface StoredOverride {
  readonly state: "healthy" | "unhealthy";
  /** RFC 3339, UTC; null: until it is removed. */
  readonly until: string | null;
}

export interface ClaimKey {
  /** `name`: of an object; `definition`: of a middleware; `container`: the id of one; `event`: the last one that counts. */
  readonly kind: "host" | "place" | "name" | "definition" | "container" | "event";
  /** `shop.example.com`, `shop.example.com/api`, `routes web`. */
  readonly name: string;
}

/** What a container has first, and keeps while it exists. */
export interface StoredClaim extends ClaimKey {
  /** `container web`, `compose media/web`, `compose media`. */
  readonly holder: string;
  /** What makes two definitions of a name the same; empty: nothing does. Of a container: the root of its objects' ids. Of an event: when it was, in milliseconds. */
  readonly content: string;
  /** RFC 3339, UTC; null: the holder exists. */
  readonly gone_at: string | null;
}

/** A time of last use. */
export interface UsedAt {
  readonly id: string;
  /** RFC 3339, UTC. */
  readonly last_used_at: string;
}

/** What a node of a fleet has seen beside changes. */
export interface NodeActivity {
  /** UUID; the same when it is sent again. */
  readonly batch_id: string;
  /** Id of the node. */
  readonly node_id: string;
  readonly audit: readonly StoredAuditEntry[];
  readonly login_failures: readonly LoginFailure[];
  readonly tokens_used: readonly UsedAt[];
  readonly credentials_used: readonly UsedAt[];
}

/** Writing a fact again changes nothing. */
export type Fact =
  | { readonly kind: "session_began"; readonly session: StoredSession }
  /** Sessions of the management API have ended; unknown ids are ignored. */
  | { readonly kind: "sessions_ended"; readonly ids: readonly string[] }
  /** The second factor of a user; null: removed. */
  | {
      readonly kind: "second_factor";
      readonly user_id: string;
      readonly record: StoredSecondFactor | null;
    }
  /** The admin token; null: removed. */
  | { readonly kind: "admin_token"; readonly token: StoredAdminToken | null }
  /** The state of a certificate's ACME orders. */
  | {
      readonly kind: "acme_state";
      readonly certificate_id: string;
      readonly document: Readonly<Record<string, unknown>>;
    }
  /** All challenge responses of the orders of a node, sealed; every node serves them. */
  | { readonly kind: "acme_challenges"; readonly node_id: string; readonly sealed: string }
  /** The leading node has delivered notifications of an alert, or given up; `keys` are the same for all nodes. Not stored. */
  | { readonly kind: "alert_sent"; readonly alert_id: string; readonly keys: readonly string[] }
  | { readonly kind: "node_activity"; readonly activity: NodeActivity }
  /** Cached responses of one plugin instance, or of all, are to be purged. Stored nowhere: caches end with their process. */
  | { readonly kind: "cache_purged"; readonly plugin_id: string | null; readonly which: Purge }
  /** The same for a soft purge: they become stale. */
  | { readonly kind: "cache_soft_purged"; readonly plugin_id: string | null; readonly which: Purge }
  /** The override of a target's health; null: removed. */
  | {
      readonly kind: "health_override";
      readonly target_id: string;
      readonly override: StoredOverride | null;
    }
  /** Another secret key takes the place of the present one, under which it is sealed (base64url of 32 bytes). Never stored as such. */
  | { readonly kind: "secret_key"; readonly key_id: string; readonly sealed: string }
  /** The root of the local CA; null: removed. */
  | { readonly kind: "local_ca"; readonly root: StoredLocalCa | null }
  /** Of one source of discovery: `docker`, or `docker@node`. */
  | {
      readonly kind: "discovery_claims";
      readonly source: string;
      readonly claims: readonly StoredClaim[];
      readonly released: readonly ClaimKey[];
    }
  /** Whether load balancers should send no requests to a node of the fleet; only that node stores it. */
  | { readonly kind: "node_drained"; readonly node_id: string; readonly drained: boolean };

/** The place of an entry in the log. */
export interface EntryMark {
  /** From 1, without gaps. */
  readonly position: number;
  /** UUID, chosen by its writer: tells entries of equal positions in two histories apart. */
  readonly id: string;
}
