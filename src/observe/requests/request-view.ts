// The representation of a recent request: names for ids, masked query; knows no ring and no HTTP.
import {
  type CacheOutcome,
  decodeCacheOutcome,
  explainCacheOutcome,
} from "../../model/cache-outcome.ts";
import { grpcStatusNames } from "../../http/grpc.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import type { RingEntry } from "../../shared-memory/request-ring.ts";
import type { Target } from "../../model/target.ts";

/** An object of the request; the name is null when it was deleted or has none. */
export interface ObjectReference {
  readonly id: string;
  readonly name: string | null;
}

/** What the cache did, and why in sentences. */
export interface CacheView extends CacheOutcome {
  readonly detail: string;
}

/** The status of a gRPC call. */
export interface GrpcView {
  readonly status: number;
  /** Such as `UNAVAILABLE`. */
  readonly name: string;
}

/** A recent request, or a connection of a stream route. Unknown members, and those without meaning for a stream, are null. */
export interface RequestView {
  readonly id: string;
  readonly kind: "http" | "stream";
  /** RFC 3339: start of the request. */
  readonly time: string;
  readonly client: string;
  readonly method: string | null;
  /** `http` or `https`; for streams `tcp` or `udp`. */
  readonly scheme: string;
  readonly host: string | null;
  /** With the query, secrets masked. */
  readonly path: string | null;
  readonly status: number | null;
  readonly route: ObjectReference | null;
  readonly service: ObjectReference | null;
  readonly target: { readonly id: string; readonly address: string | null } | null;
  readonly consumer: string | null;
  readonly attempts: number;
  /** Milliseconds. */
  readonly timings: {
    readonly queue: number | null;
    readonly plugins: number | null;
    readonly connect: number | null;
    readonly first_byte: number | null;
    readonly total: number;
  };
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly reasons: readonly string[];
  /** Null: no cache applied. */
  readonly cache: CacheView | null;
  /** Null: not gRPC. */
  readonly grpc: GrpcView | null;
  readonly tls_version: string | null;
  readonly http_version: string | null;
  readonly user_agent: string | null;
  /** Fields with truncated text. */
  readonly truncated: readonly string[];
}

export interface ViewContext {
  readonly config: GatewayConfig;
  readonly redact: (target: string) => string;
  readonly idOf: (entry: RingEntry) => string;
}

export function toRequestView(entry: RingEntry, context: ViewContext): RequestView {
  const { config, redact, idOf } = context;
  const isHttp = entry.kind === "http";
  const routes = isHttp ? config.routes : config.stream_routes;
  const target = config.targets.get(entry.target_id);
  const cache = decodeCacheOutcome(entry.cache);
  return {
    id: idOf(entry),
    kind: entry.kind,
    time: new Date(entry.started_at).toISOString(),
    client: entry.client,
    method: known(entry.method),
    scheme: entry.scheme,
    host: known(entry.host),
    path: isHttp ? redact(entry.target) : null,
    status: entry.status === 0 ? null : entry.status,
    route: met(entry.route, routes.get(entry.route)?.name),
    service: met(entry.service, config.services.get(entry.service)?.name),
    target:
      entry.target_id === ""
        ? null
        : { id: entry.target_id, address: target === undefined ? null : addressOf(target) },
    consumer: known(entry.consumer),
    attempts: entry.attempts,
    timings: {
      queue: milliseconds(entry.queue),
      plugins: milliseconds(entry.plugins),
      connect: milliseconds(entry.connect),
      first_byte: milliseconds(entry.first_byte),
      total: milliseconds(entry.total) ?? 0,
    },
    bytes_in: entry.bytes_in,
    bytes_out: entry.bytes_out,
    reasons: entry.reasons === "" ? [] : entry.reasons.split(" "),
    cache: cache === null ? null : { ...cache, detail: explainCacheOutcome(cache) },
    grpc: grpcOf(entry.grpc - 1),
    tls_version: known(entry.tls_version),
    http_version: known(entry.http_version),
    user_agent: known(entry.user_agent),
    truncated: entry.cut.map((name) => (name === "target" ? "path" : name)),
  };
}

const known = (text: string) => (text === "" ? null : text);

const met = (id: string, name: string | null | undefined): ObjectReference | null =>
  id === "" ? null : { id, name: name ?? null };

const grpcOf = (status: number): GrpcView | null =>
  status < 0 ? null : { status, name: grpcStatusNames[status] ?? "" };

/** Rounds to microseconds. */
const milliseconds = (ms: number) => (ms < 0 ? null : Math.round(ms * 1000) / 1000);

/** In the form of a URL: `10.0.0.1:80`, `[::1]:80`, `unix:/run/x`. */
export const addressOf = ({ host, port }: Target): string =>
  port === null ? host : `${host.includes(":") ? `[${host}]` : host}:${port}`;
