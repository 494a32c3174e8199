// Converts upstreams of Kong with targets and health checks to fields of the services that use them.
import { invalid } from "../../model/error.ts";
import type { Members } from "../members.ts";
import { commonOf, type KongContext, referenceOf } from "./context.ts";

export interface Upstream {
  readonly members: Members;
  /** Fields of the service. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly targets: readonly UpstreamTarget[];
  readonly clientCertificate: string | null;
  readonly tags: readonly string[];
}

export interface UpstreamTarget {
  readonly host: string;
  readonly port: number | null;
  readonly weight: number;
  readonly tags: readonly string[];
}

/** Upstreams by name. */
export function readUpstreams(context: KongContext): ReadonlyMap<string, Upstream> {
  const { root } = context;
  const loose = new Map<string, Members[]>();
  for (const target of root.objects("targets")) {
    const owner = referenceOf(target, "upstream") ?? "";
    loose.set(owner, [...(loose.get(owner) ?? []), target]);
  }
  const found = new Map<string, Upstream>();
  for (const members of root.objects("upstreams")) {
    const name = members.text("name");
    if (name === null) throw invalid(`${members.path}.name`, "is required");
    members.setLabel(`upstream "${name}"`);
    const id = members.text("id");
    const own = [name, id].flatMap((word) => (word === null ? [] : (loose.get(word) ?? [])));
    for (const word of [name, id]) if (word !== null) loose.delete(word);
    found.set(name, readUpstream(members, [...members.objects("targets"), ...own]));
  }
  for (const targets of loose.values())
    for (const target of targets) target.drop("its upstream is not in the file");
  return found;
}

function readUpstream(members: Members, targets: readonly Members[]): Upstream {
  const { tags } = commonOf(members);
  members.omit("slots", "consistent hashing has no slots", 10_000);
  members.omit("use_srv_name", "the name of the target is used", false);
  const usesSrv = members.raw("use_srv_name") === true;
  const health = members.object("healthchecks");
  const hostHeader = members.text("host_header");
  return {
    members,
    fields: {
      ...balancing(members),
      ...(hostHeader === null ? {} : { host_header: hostHeader }),
      ...(usesSrv ? { resolve: "srv" } : {}),
      health: health === null ? { passive: { enabled: false } } : readHealth(health),
    },
    targets: targets.map(readTarget),
    tags: tags as string[],
    clientCertificate: referenceOf(members, "client_certificate"),
  };
}

const algorithms: Readonly<Record<string, string>> = {
  "round-robin": "round_robin",
  "least-connections": "least_connections",
  "consistent-hashing": "consistent_hash",
  latency: "ewma",
};

const sources: Readonly<Record<string, string>> = {
  ip: "ip",
  header: "header",
  cookie: "cookie",
  path: "path",
  query_arg: "query",
  consumer: "consumer",
};

function balancing(members: Members): Record<string, unknown> {
  const word = members.text("algorithm") ?? "round-robin";
  const hashOn = members.text("hash_on") ?? "none";
  const fallback = members.text("hash_fallback") ?? "none";
  const names = ["header", "cookie", "query_arg"].map(
    (source) => [source, members.text(`hash_on_${source}`)] as const,
  );
  for (const name of ["hash_fallback_header", "hash_fallback_query_arg"])
    members.omit(name, "the fallback is the client address");
  members.omit("hash_fallback_uri_capture", "path captures cannot be hashed");
  members.omit("hash_on_uri_capture", "path captures cannot be hashed");
  members.omit("hash_on_cookie_path", "the cookie is not set by the gateway", "/");
  for (const name of ["sticky_sessions_cookie", "sticky_sessions_cookie_path"])
    members.omit(name, "enable sticky of the service instead", "/");
  const algorithm = Object.hasOwn(algorithms, word) ? algorithms[word] : undefined;
  if (algorithm === undefined) members.changed("algorithm", `${word} became round_robin`);
  if (hashOn === "none") return { algorithm: algorithm ?? "round_robin" };
  const source = Object.hasOwn(sources, hashOn) ? sources[hashOn] : undefined;
  if (source === undefined) members.changed("hash_on", `${hashOn} became ip`);
  const name = names.find(([each]) => each === hashOn)?.[1] ?? "";
  const isNamed = ["header", "query", "cookie"].includes(sources[fallback] ?? "");
  if (fallback !== "none" && (isNamed || !Object.hasOwn(sources, fallback)))
    members.changed("hash_fallback", `${fallback} became ip`);
  return {
    // Kong hashes whenever hash_on is set.
    algorithm: "consistent_hash",
    hash_on: {
      source: source ?? "ip",
      name,
      fallback: fallback === "none" || isNamed ? "ip" : (sources[fallback] ?? "ip"),
    },
  };
}

function readTarget(members: Members): UpstreamTarget {
  const text = members.text("target");
  if (text === null) throw invalid(`${members.path}.target`, "is required");
  members.setLabel(`target "${text}"`);
  for (const name of ["id", "upstream"]) members.raw(name);
  members.omit("failover", "give the target a higher priority instead", false);
  const { tags } = commonOf(members);
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw invalid(`${members.path}.target`, "must be a host and a port");
  const weight = members.bounded("weight", { min: 0, max: 65_535 }) ?? 100;
  return { host, port: Number(port ?? 8000), weight, tags: tags as string[] };
}

function readHealth(members: Members): Record<string, unknown> {
  const active = members.object("active");
  const passive = members.object("passive");
  const threshold = members.bounded("threshold", { min: 0, max: 100 });
  return {
    active: active === null ? {} : readActive(active),
    passive: passive === null ? { enabled: false } : readPassive(passive),
    ...(threshold === null || threshold === 0 ? {} : { panic_percent: threshold }),
  };
}

const count = { min: 1, max: 100 };
const seconds = { min: 1, max: 3600 };

function readActive(members: Members): Record<string, unknown> {
  const healthy = members.object("healthy");
  const unhealthy = members.object("unhealthy");
  const every = positive(healthy, "interval", seconds);
  const again = positive(unhealthy, "interval", seconds);
  members.omit("concurrency", "the gateway spreads checks automatically", 10);
  const headers = members.raw("headers");
  const type = members.text("type") ?? "http";
  const isKnown = ["http", "https", "tcp"].includes(type);
  if (!isKnown) members.changed("type", `${type} became tcp`);
  const path = members.text("http_path");
  members.omit("https_sni", "tls.server_name of the service is used");
  members.omit("https_verify_certificate", "the service's tls decides", true);
  const timeout = positive(members, "timeout", { min: 1, max: 300 });
  const statuses = healthy?.numbers("http_statuses") ?? [];
  unhealthy?.omit("http_statuses", "every unexpected status is a failure", [
    ...[429, 404, 500, 501, 502, 503, 504, 505],
  ]);
  const failures = worst(unhealthy, ["http_failures", "tcp_failures", "timeouts"]);
  const successes = positive(healthy, "successes", count);
  return {
    enabled: every !== null || again !== null,
    type: isKnown ? type : "tcp",
    ...(path === null ? {} : { path }),
    ...(headers === null ? {} : { headers: headersOf(headers) }),
    ...(every === null ? {} : { interval: every }),
    ...(again === null ? {} : { unhealthy_interval: again }),
    ...(timeout === null ? {} : { timeout }),
    ...(statuses.length === 0 ? {} : { expect_statuses: statuses }),
    ...(failures === null ? {} : { unhealthy_threshold: failures }),
    ...(successes === null ? {} : { healthy_threshold: successes }),
  };
}

/** Zero: never. */
function positive(members: Members | null, name: string, bounds: { min: number; max: number }) {
  if (members === null || members.number(name) === 0) return null;
  return members.bounded(name, bounds);
}

/** The gateway has one threshold for all kinds of failures. */
function worst(members: Members | null, names: readonly string[]): number | null {
  if (members === null) return null;
  const found = names.flatMap((name) => positive(members, name, count) ?? []);
  if (new Set(found).size > 1)
    members.changed(
      names.join(", "),
      `one threshold applies to all: the smallest of ${found.join(", ")}`,
    );
  return found.length === 0 ? null : Math.min(...found);
}

function headersOf(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(Object(value)).map(([name, inner]) => [
      name,
      String(Array.isArray(inner) ? inner[0] : inner),
    ]),
  );
}

function readPassive(members: Members): Record<string, unknown> {
  members.omit("type", "passive checks follow the protocol of the service", "http");
  members.object("healthy")?.drop("an ejected target returns after ejection_seconds");
  const unhealthy = members.object("unhealthy");
  const statuses = unhealthy?.numbers("http_statuses") ?? [];
  const failures = worst(unhealthy, ["http_failures", "tcp_failures", "timeouts"]);
  return {
    enabled: failures !== null,
    ...(failures === null ? {} : { consecutive_failures: failures }),
    ...(statuses.length === 0 ? {} : { statuses }),
  };
}
