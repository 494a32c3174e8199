// Reports changes of target health, once per process, in the log and as events; decides nothing.
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import type { Service } from "../../model/service.ts";
import type { Target } from "../../model/target.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { type Health, nextStateChange, readHealth } from "../../shared-memory/target-health.ts";
import type { Changes } from "../change.ts";

/** The health of a target changed. */
export interface HealthEvent {
  readonly target_id: string;
  readonly service_id: string;
  readonly host: string;
  readonly port: number | null;
  readonly state: Health["state"];
  /** Text for people. */
  readonly reason: string;
}

export interface HealthWatchOptions {
  readonly board: TargetBoard;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly log: Log;
  readonly publish: (event: HealthEvent) => void;
}

/** A service with its targets at the last check. */
interface Watched {
  readonly service: Service;
  readonly row: number;
  readonly targets: readonly { readonly target: Target; readonly row: number }[];
  version: number;
  /** Board time until which nothing changes without a new version. */
  validUntil: number;
}

export class HealthWatch {
  readonly #options: HealthWatchOptions;
  #services: unknown = null;
  #targets: unknown = null;
  #watched: readonly Watched[] = [];
  /** The last reported state, by target. */
  #reported = new Map<string, Health["state"]>();

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** Reports changes since the last call; called about once a second. */
  check(): void {
    this.#follow();
    const { board, clock } = this.#options;
    const now = clock.now();
    const time = board.time(now);
    for (const watched of this.#watched) {
      const version = board.get(watched.row, "version");
      if (version === watched.version && time < watched.validUntil) continue;
      watched.version = version;
      watched.validUntil = Number.POSITIVE_INFINITY;
      for (const { target, row } of watched.targets) {
        watched.validUntil = Math.min(watched.validUntil, nextStateChange(board, row, time));
        this.#report(watched.service, target, readHealth(board, row, now));
      }
    }
  }

  /** Updates the watched services and targets to those in use; drops the state of others. */
  #follow(): void {
    const { board, changes } = this.#options;
    const { services, targets } = changes.config;
    if (services === this.#services && targets === this.#targets) return;
    this.#services = services;
    this.#targets = targets;
    const groups = Map.groupBy(targets.values(), (target) => target.service_id);
    const reported = new Map<string, Health["state"]>();
    const watched: Watched[] = [];
    for (const service of services.values()) {
      const row = service.enabled ? board.findRow(service.id) : null;
      if (row === null) continue;
      const rows = (groups.get(service.id) ?? []).flatMap((target) => {
        const found = target.enabled ? board.findRow(target.id) : null;
        return found === null ? [] : [{ target, row: found }];
      });
      for (const { target } of rows)
        reported.set(target.id, this.#reported.get(target.id) ?? "unknown");
      watched.push({ service, row, targets: rows, version: -1, validUntil: 0 });
    }
    this.#reported = reported;
    this.#watched = watched;
  }

  #report(service: Service, target: Target, health: Health): void {
    const before = this.#reported.get(target.id) ?? "unknown";
    const state = health.isCertain ? health.state : uncertainState(before);
    if (before === state) return;
    this.#reported.set(target.id, state);
    const { id, service_id, host, port } = target;
    const reason = reasonOf({ ...health, state });
    const { log, publish } = this.#options;
    const fields = { service: service.name, target: id, host, port, reason };
    if (state === "unhealthy") log.warn("a target is unhealthy", fields);
    else if (before === "unhealthy") log.info("a target receives traffic again", fields);
    else if (state === "failing") log.warn("a target fails but still receives traffic", fields);
    else if (before === "failing") log.info("a target succeeds again", fields);
    publish({ target_id: id, service_id, host, port, state, reason });
  }
}

/** Does not report a single failure among successes; after a worse state it ends that state. */
const uncertainState = (before: Health["state"]): Health["state"] =>
  before === "healthy" ? "healthy" : "unknown";

function reasonOf({ state, by, lastError }: Health): string {
  if (by === "override") return `an override sets it to ${state}`;
  if (state === "unhealthy" || state === "failing") return lastError ?? "checks failed";
  if (state === "unknown") return "no failure is known any more";
  if (by === "active") return "active checks succeed";
  return "it responds to requests";
}
