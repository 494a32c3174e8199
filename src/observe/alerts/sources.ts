// Converts events of the gateway to signals; knows no alert and no sink.
import type {
  AcmeEvent,
  CertificateEvent,
  EventPayloads,
  NodeEvent,
  OverloadEvent,
  WorkerEvent,
} from "../../control/events.ts";
import type { HealthEvent } from "../../control/health/health-watch.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import type { Signal } from "./notice.ts";

/** Kinds of events that alerts watch. */
export const watchedKinds = [
  "health",
  "acme",
  "certificate",
  "worker",
  "overload",
  "node",
] as const;
type WatchedKind = (typeof watchedKinds)[number];

/** Null for an event that begins or ends no incident. `node`: the name of this one in its fleet. */
export function signalOf(
  kind: WatchedKind,
  payload: unknown,
  { config, node }: { readonly config: GatewayConfig; readonly node?: string | undefined },
) {
  const readers: { readonly [K in WatchedKind]: (event: EventPayloads[K]) => Signal | null } = {
    health: (event) => ofHealth(event, config),
    acme: ofOrder,
    certificate: ofCertificate,
    worker: ofWorker,
    overload: ofOverload,
    node: (event) => ofNode(event, node),
  };
  return (readers[kind] as (event: unknown) => Signal | null)(payload);
}

function ofHealth(event: HealthEvent, config: GatewayConfig): Signal {
  const { target_id: id, service_id: serviceId, host, port, state, reason } = event;
  const service = config.services.get(serviceId)?.name ?? serviceId;
  const name = port === null ? host : `${host}:${port}`;
  const isDown = state === "unhealthy" || state === "failing";
  return {
    event: "target_down",
    key: `target ${id}`,
    state: isDown ? "begun" : "over",
    object: { kind: "target", id, name },
    serviceId,
    title: `Target ${name} of service "${service}" ${isDown ? "is down" : "is up again"}`,
    message: `${sentence(reason)}`,
    isAlwaysTold: false,
    validUntil: null,
  };
}

function ofOrder({ status, id, name, attempts, ...event }: AcmeEvent): Signal | null {
  if (status === "ordering") return null;
  const isFailing = status === "failed";
  const next =
    event.next_attempt_at === null ? "" : ` The next attempt is at ${event.next_attempt_at}.`;
  return {
    event: "certificate_failing",
    key: `order ${id}`,
    state: isFailing ? "begun" : "over",
    object: { kind: "certificate", id, name },
    serviceId: null,
    title: `Certificate "${name}" ${isFailing ? "cannot be issued or renewed" : "was issued"}`,
    message: isFailing
      ? `${sentence(event.last_error ?? "the CA gave no reason")} Attempts so far: ${attempts}.${next}`
      : `It is for ${event.domains.join(", ")}.`,
    isAlwaysTold: false,
    validUntil: null,
  };
}

function ofCertificate({ what, id, name, domains, not_after }: CertificateEvent): Signal | null {
  if (what === "revoked") return null;
  const isOver = what === "issued" || what === "renewed";
  const words = { expiring: "expires soon", expired: "has expired" };
  return {
    event: "certificate_expiring",
    key: `expiry ${id}`,
    state: isOver ? "over" : "begun",
    object: { kind: "certificate", id, name },
    serviceId: null,
    title: `Certificate "${name}" ${isOver ? "was renewed" : words[what]}`,
    message: `It is for ${domains.join(", ")} and valid until ${not_after ?? "an unknown time"}.`,
    // Sent at a few thresholds only, from a month before to the expiry.
    isAlwaysTold: !isOver,
    validUntil: not_after,
  };
}

/** Without the reason, which may be any error message and is for admins only. */
function ofWorker({ event, worker, restarts }: WorkerEvent): Signal | null {
  if (event !== "died" && event !== "ready") return null;
  const hasDied = event === "died";
  return {
    event: "worker_died",
    key: `worker ${worker}`,
    state: hasDied ? "begun" : "over",
    object: { kind: "worker", id: "", name: `worker ${worker}` },
    serviceId: null,
    title: `Worker ${worker} ${hasDied ? "ended unexpectedly" : "serves again"}`,
    message: hasDied
      ? "Its requests were aborted. It restarts; the log holds the reason."
      : `It was started again ${restarts} times since the gateway started.`,
    isAlwaysTold: false,
    validUntil: null,
  };
}

function ofOverload({ what, state, limit }: OverloadEvent): Signal {
  const isMemory = what === "memory";
  const words = isMemory
    ? { short: "Memory is", enough: "There is enough memory" }
    : { short: "Files and sockets are", enough: "There are enough files and sockets" };
  const begun = isMemory
    ? `The limit is ${Math.floor(limit / 1_048_576)} MiB. The gateway responds to new requests with 503.`
    : `The limit is ${limit}. The gateway accepts no new connections.`;
  return {
    event: "overload",
    key: `overload ${what}`,
    state,
    object: { kind: "gateway", id: "", name: "gateway" },
    serviceId: null,
    title: state === "begun" ? `${words.short} short` : `${words.enough} again`,
    message: state === "begun" ? begun : "The gateway accepts everything again.",
    isAlwaysTold: false,
    validUntil: null,
  };
}

/** What an operator does next about a node in trouble. */
const NEXT: Readonly<Partial<Record<NodeEvent["event"], string>>> = {
  away: "It does not report any more. Look whether it runs; one that is gone for good is removed on the page Fleet, or with sluice fleet remove.",
  cut_off:
    "It does not reach the database of the fleet. It serves what it has, and no changes can be made there: look at the database, and the network between them.",
  refused:
    "It cannot serve the last change, and the others do. The page Fleet says why, such as a port that is taken or a full disk.",
  outdated: "The last change was made by a newer version of Sluice: upgrade this node.",
  diverged:
    "It has changes that the database of the fleet lacks, as after the restore of a backup. Decide which are right with sluice fleet adopt.",
};

/**
 * Each node reports itself, also while it is cut off; of the others only that they are away, which they cannot say. Without the
 * reason, as `ofWorker`.
 */
function ofNode({ event, node_id: id, name }: NodeEvent, ownName: string | undefined): Signal {
  const isOwn = name === ownName;
  const next = isOwn || event === "away" ? NEXT[event] : undefined;
  const words = event === "left" ? "has left" : "is in order again";
  return {
    event: "node_failing",
    key: isOwn ? `node ${id}` : `away ${id}`,
    state: next === undefined ? "over" : "begun",
    object: { kind: "node", id, name },
    serviceId: null,
    title: `Node ${name} of the fleet ${next === undefined ? words : `is ${event.replace("_", " ")}`}`,
    message: next ?? "Nothing has to be done.",
    isAlwaysTold: false,
    validUntil: null,
  };
}

function sentence(text: string): string {
  const trimmed = text.trim().slice(0, 1000);
  return `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}${/[.!?]$/.test(trimmed) ? "" : "."}`;
}

/** The end of an incident whose object is no longer watched; null while it is. */
export function endOfUnwatched(signal: Signal, config: GatewayConfig): Signal | null {
  const { kind, id, name } = signal.object;
  if (kind === "target") {
    const target = config.targets.get(id);
    if (target?.enabled && config.services.get(target.service_id)?.enabled) return null;
  } else if (kind === "certificate") {
    const certificate = config.certificates.get(id);
    const isReplaced =
      signal.event === "certificate_expiring" && certificate?.not_after !== signal.validUntil;
    if (certificate?.enabled && !isReplaced) return null;
    if (certificate?.enabled)
      return {
        ...signal,
        state: "over",
        isAlwaysTold: false,
        title: `Certificate "${name}" was replaced`,
        message: `The new one is valid until ${certificate.not_after ?? "an unknown time"}.`,
      };
  } else return null;
  return {
    ...signal,
    state: "over",
    isAlwaysTold: false,
    title: `${kind === "target" ? "Target" : "Certificate"} ${name} is no longer watched`,
    message: "It was deleted or disabled.",
  };
}
