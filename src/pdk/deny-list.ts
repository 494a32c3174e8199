// Common parts of plugins that deny addresses by lists from elsewhere: settings, handlers, metrics; knows no source of lists.
import type { PluginHandlers, PluginMetric } from "./definition.ts";
import { cidr, flag, integer, listOf, milliseconds } from "./fields.ts";
import type { PluginKit } from "./kit.ts";
import { compileCidrs, NetworkLookup, type NetworkTable } from "./net.ts";
import { type Outcome, reject } from "./response.ts";

/** What a feed publishes after each attempt. */
export interface DenyState {
  /** Null: there never was one. */
  readonly table: NetworkTable | null;
  /** When the source was last reached, in milliseconds since 1970; null: never, or not all of it. */
  readonly contactMs: number | null;
}

/** Settings of all such plugins, beside those of their sources. */
export const denyFields = (use: {
  readonly allow: readonly string[];
  readonly timeout: number;
}) => ({
  allow: listOf(cidr({ description: "Address or network, IPv4 or IPv6" }), {
    default: [...use.allow],
    maxItems: 10_000,
    description: "Addresses and networks that are never denied",
  }),
  status: integer(403, { minimum: 400, maximum: 599, description: "Status of rejections" }),
  fail_open: flag(false, "Allow other addresses while the list is unavailable"),
  status_on_error: integer(503, {
    minimum: 400,
    maximum: 599,
    description: "Status of rejections while the list is unavailable",
  }),
  max_age: integer(0, {
    minimum: 0,
    maximum: 31_536_000,
    description:
      "Seconds without a successful request after which the list is unavailable; 0: the last list stays in use",
  }),
  timeout: milliseconds(use.timeout, "Timeout of a request for the list in milliseconds"),
  stream_reset: flag(false, "Streams: close TCP connections with a reset instead of FIN"),
});

interface DenyConfig {
  readonly allow: readonly string[];
  readonly status: number;
  readonly fail_open: boolean;
  readonly status_on_error: number;
  readonly max_age: number;
  readonly timeout: number;
  readonly stream_reset: boolean;
}

/** Paragraphs that hold for all of them. */
export const DENY_DESCRIPTION = `The address is the client's, after \`settings.trusted_proxies\`. A denied address gets \`status\`, unless it is in \`allow\`.

The list is **unavailable** until it was first loaded, and with \`max_age\` also when the source has not been reached for so long. Addresses
that are already known to be denied stay denied; all others get \`status_on_error\`, or pass with \`fail_open\`. Requests that arrive
while the gateway loads the list for the first time wait for it, for at most \`timeout\` and 5 seconds.

For streams (global scope, stream routes, services for TCP and UDP) the gateway closes the connection or drops the datagram, without
waiting for the first list. Open connections survive a change of the list.`;

/** Longest time that requests wait for the first list. */
const MAX_WAIT_MS = 5000;
/** The result travels to the workers. */
const GRACE_MS = 500;

/**
 * The handlers of an instance. `reasons`: why an address is denied, by the values of the table. `name`: begins the reasons
 * `.unavailable` and `.open`.
 */
export function denyHandlers(
  own: DenyConfig,
  kit: PluginKit,
  { name, reasons }: { readonly name: string; readonly reasons: readonly string[] },
): PluginHandlers {
  const isAllowed = compileCidrs(own.allow);
  const denied = reasons.map((reason) =>
    reject(own.status, reason, { detail: "this address is not allowed" }),
  );
  const unavailable = reject(own.status_on_error, `${name}.unavailable`, {
    detail: "the list of denied addresses is unavailable",
    token: "proxy_internal_response",
  });
  const list = new FollowedList(kit, own.max_age * 1000);
  const judge = (context: { clientAddress(): string; note(reason: string): void }) => {
    const address = context.clientAddress();
    const found = list.find(address);
    if (found < 0 && list.isAvailable) return undefined;
    if (isAllowed(address)) return undefined;
    if (found >= 0) return denied[found];
    if (!own.fail_open) return unavailable;
    context.note(`${name}.open`);
    return undefined;
  };
  return {
    preAuth(context): Outcome | Promise<Outcome> {
      if (!list.isAwaited) return judge(context);
      return list.arrived(Math.min(own.timeout, MAX_WAIT_MS) + GRACE_MS).then(() => judge(context));
    },
    connect(context) {
      const refusal = judge(context);
      return refusal && { reason: refusal.reason, reset: own.stream_reset };
    },
    close: () => list.close(),
  };
}

/** The newest list in this worker. */
class FollowedList {
  readonly #maxAgeMs: number;
  readonly #end: (() => void) | undefined;
  readonly #first = Promise.withResolvers<void>();
  #lookup: NetworkLookup | null = null;
  #contactMs: number | null = null;
  /** Whether the first list is still to come, so that requests wait for it. */
  isAwaited = true;

  constructor({ followFeed }: PluginKit, maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs;
    this.#end = followFeed?.((message) => this.#use(message as DenyState));
    this.isAwaited = followFeed !== null;
  }

  #use({ table, contactMs }: DenyState): void {
    this.#lookup = table === null ? null : new NetworkLookup(table);
    this.#contactMs = contactMs;
    this.#arrive();
  }

  #arrive(): void {
    this.isAwaited = false;
    this.#first.resolve();
  }

  get isAvailable(): boolean {
    if (this.#contactMs === null) return false;
    return this.#maxAgeMs === 0 || Date.now() - this.#contactMs <= this.#maxAgeMs;
  }

  /** Index of the reason; -1: the address is not denied. */
  find(address: string): number {
    return this.#lookup === null ? -1 : this.#lookup.find(address, Date.now);
  }

  /** Resolves with the first list, or when the time is over, after which no request waits. */
  async arrived(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.#arrive(), timeoutMs);
    await this.#first.promise;
    clearTimeout(timer);
  }

  close(): void {
    this.#end?.();
    this.#arrive();
  }
}

/** The names under which a feed reports, and their metrics. */
const METRICS = {
  entries: "Addresses and networks in the list.",
  up: "Whether the last request for the list succeeded.",
  contact_timestamp_seconds: "When the source of the list was last reached; 0: never.",
  requests: "Requests for the list.",
} as const;

export type DenyFigures = Readonly<Record<keyof typeof METRICS, number>>;

/** `prefix`: `sluice_crowdsec`. */
export const denyMetrics = (prefix: string): readonly PluginMetric[] =>
  Object.entries(METRICS).map(([key, help]) => ({
    name: `${prefix}_${key}`,
    help,
    type: key === "requests" ? "counter" : "gauge",
    read: ({ name }, counters) => [{ labels: { plugin: name }, value: counters.value(key) }],
  }));
