// Where the counter server is; connects to nothing.

/** Where the counters are. */
export interface CountersAddress {
  /** `redis://user:password@host:port/0`, or `rediss://` for TLS. */
  readonly url: string;
  /** PEM; null: the CAs of the system, no client certificate. */
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  /** Milliseconds for a reply: Bun has no timeout for commands. */
  readonly timeoutMs: number;
}
