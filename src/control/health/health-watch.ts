// Tells once in the process when the health of a target changes, in the log and to listeners; decides nothing.
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import type { Service } from "../../model/service.ts";
import type { Target } from "../../model/target.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { type Health, nextStateChange, readHealth } from "../../shared-memory/target-health.ts";
import type { Changes } from "../change.ts";

/** A target's health is another one now. */
export interface HealthEvent {
  readonly target_id: string;
  readonly service_id: string;
  readonly host: string;
  readonly port: number | null;
  readonly state: Health["state"];
  /** In words, for people. */
  readonly reason: string;
}

export interface HealthWatchOptions {
  readonly board: TargetBoard;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly log: Log;
  readonly publish: (event: HealthEvent) => void;
}

/** One service with its targets, as it was last looked at. */
interface Watched {
  readonly service: Service;
  readonly row: number;
  readonly targets: readonly { readonly target: Target; readonly row: number }[];
  version: number;
  /** In the board's time: until when nothing changes unless it is noted. */
  validUntil: number;
}

export class HealthWatch {
  readonly #options: HealthWatchOptions;
  #services: unknown = null;
  #targets: unknown = null;
  #watched: readonly Watched[] = [];
  /** What was last told, by target. */
  #told = new Map<string, Health["state"]>();

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  /** Looks at what has changed since the last time; call it about once a second. */
  look(): void {
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
        this.#tell(watched.service, target, readHealth(board, row, now));
      }
    }
  }

  /** Watches what is in use now; of those that are not, nothing is remembered. */
  #follow(): void {
    const { board, changes } = this.#options;
    const { services, targets } = changes.config;
    if (services === this.#services && targets === this.#targets) return;
    this.#services = services;
    this.#targets = targets;
    const groups = Map.groupBy(targets.values(), (target) => target.service_id);
    const told = new Map<string, Health["state"]>();
    const watched: Watched[] = [];
    for (const service of services.values()) {
      const row = service.enabled ? board.findRow(service.id) : null;
      if (row === null) continue;
      const rows = (groups.get(service.id) ?? []).flatMap((target) => {
        const found = target.enabled ? board.findRow(target.id) : null;
        return found === null ? [] : [{ target, row: found }];
      });
      for (const { target } of rows) told.set(target.id, this.#told.get(target.id) ?? "unknown");
      watched.push({ service, row, targets: rows, version: -1, validUntil: 0 });
    }
    this.#told = told;
    this.#watched = watched;
  }

  #tell(service: Service, target: Target, health: Health): void {
    const before = this.#told.get(target.id) ?? "unknown";
    const state = health.isCertain ? health.state : uncertainState(before);
    if (before === state) return;
    this.#told.set(target.id, state);
    const { id, service_id, host, port } = target;
    const reason = reasonOf({ ...health, state });
    const { log, publish } = this.#options;
    const fields = { service: service.name, target: id, host, port, reason };
    if (state === "unhealthy") log.warn("a target is unhealthy", fields);
    else if (before === "unhealthy") log.info("a target takes traffic again", fields);
    else if (state === "failing") log.warn("a target fails and stays in use", fields);
    else if (before === "failing") log.info("a target works again", fields);
    publish({ target_id: id, service_id, host, port, state, reason });
  }
}

/** A single failure among successes is not reported; after a worse state it means that this state is over. */
const uncertainState = (before: Health["state"]): Health["state"] =>
  before === "healthy" ? "healthy" : "unknown";

function reasonOf({ state, by, lastError }: Health): string {
  if (by === "override") return `a person said that it is ${state}`;
  if (state === "unhealthy" || state === "failing") return lastError ?? "checks failed";
  if (state === "unknown") return "nothing speaks against it any more";
  if (by === "active") return "active checks succeed";
  return "it answers requests";
}
