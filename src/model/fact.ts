// What a change writes beside the configuration, as data: every store can write it, at any time; knows no store.

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
  /** Whether load balancers should send no requests to a node of the fleet; only that node stores it. */
  | { readonly kind: "node_drained"; readonly node_id: string; readonly drained: boolean };
