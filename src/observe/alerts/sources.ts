// Converts events of the gateway to signals; knows no alert and no sink.
import type { AcmeEvent, CertificateEvent } from "../../acme/acme-events.ts";
import type { EventPayloads, WorkerEvent } from "../../control/events.ts";
import type { OverloadEvent } from "../../control/pressure.ts";
import type { HealthEvent } from "../../control/health/health-watch.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import type { Signal } from "./notice.ts";

/** Kinds of events that alerts watch. */
export const watchedKinds = ["health", "acme", "certificate", "worker", "overload"] as const;
type WatchedKind = (typeof watchedKinds)[number];

/** Null for an event that begins or ends no incident. */
export function signalOf(kind: WatchedKind, payload: unknown, config: GatewayConfig) {
  const readers: { readonly [K in WatchedKind]: (event: EventPayloads[K]) => Signal | null } = {
    health: (event) => ofHealth(event, config),
    acme: ofOrder,
    certificate: ofCertificate,
    worker: ofWorker,
    overload: ofOverload,
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
