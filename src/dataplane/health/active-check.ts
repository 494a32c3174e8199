// Active health checks at intervals, in one of the workers; knows no client request.
import type { Service } from "../../model/service.ts";
import { CheckLease } from "../../shared-memory/check-lease.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import {
  checkFailed,
  checkSucceeded,
  ejectedUntil,
  endEjection,
  endFailing,
  type Failure,
  failsChecks,
  forgetChecks,
  isFailing,
  type HealthRows,
} from "../../shared-memory/target-health.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import { probeSpec } from "./check-request.ts";
import { Probe, type ProbeSpec } from "./probe.ts";

/** How often a worker tries to hold the lease: several times in its 3 s. */
const LEASE_POLL_MS = 500;
/** First checks in excess of this are spread over SPREAD_MS. */
const SPREAD_FROM = 20;
const SPREAD_MS = 1000;
/** Between two checks of a target, however long one takes. */
const MIN_PAUSE_MS = 100;

/** The checks of one target. Every worker has the job; the holder of the lease runs it. */
interface Job {
  /** The settings that the checks depend on: while it is the same, the job goes on. */
  readonly key: string;
  readonly serviceId: string;
  readonly rows: HealthRows;
  readonly spec: ProbeSpec;
  readonly policy: Service["health"]["active"];
  timer: Timer | null;
  probe: Probe | null;
  /** The passive check's verdict, see `#passiveVerdict`, and the checks that have succeeded in a row since. */
  verdict: number;
  successes: number;
}

export interface ActiveCheckOptions {
  readonly board: TargetBoard;
  readonly worker: number;
}

export class ActiveChecks {
  readonly #board: TargetBoard;
  readonly #lease: CheckLease;
  readonly #jobs = new Map<string, Job>();
  #services: ReadonlyMap<string, ServiceRuntime> = new Map();
  #leasePoll: Timer | null = null;
  #isLeading = false;

  constructor({ board, worker }: ActiveCheckOptions) {
    this.#board = board;
    this.#lease = new CheckLease(board, worker);
  }

  /** Another version is active: jobs of unchanged services go on. */
  update(services: ReadonlyMap<string, ServiceRuntime>): void {
    const before = this.#services;
    this.#services = services;
    const added: Job[] = [];
    for (const [id, old] of before) {
      const next = services.get(id);
      if (next !== old) this.#removeMissing(old, next);
    }
    for (const [id, service] of services)
      if (before.get(id) !== service) added.push(...this.#jobsOf(service));
    if (this.#jobs.size === 0) this.stop();
    else this.#leasePoll ??= setInterval(() => this.#pollLease(), LEASE_POLL_MS);
    if (this.#isLeading) this.#begin(added);
    else if (this.#jobs.size > 0) this.#pollLease();
  }

  /** Ends all checks and releases the lease. */
  stop(): void {
    if (this.#leasePoll !== null) clearInterval(this.#leasePoll);
    this.#leasePoll = null;
    this.#pause();
    this.#jobs.clear();
    this.#lease.release();
  }

  #removeMissing(old: ServiceRuntime, next: ServiceRuntime | undefined): void {
    const remaining = new Set(next?.targets.map((target) => target.id));
    for (const target of old.targets)
      if (!remaining.has(target.id)) this.#removeTarget(old, target);
  }

  /** Creates the jobs that are new or have changed. */
  #jobsOf(runtime: ServiceRuntime): Job[] {
    const isEnabled = runtime.service.health.active.enabled;
    const added: Job[] = [];
    for (const target of runtime.targets) {
      if (!isEnabled) {
        this.#removeTarget(runtime, target);
        continue;
      }
      const key = keyOf(runtime.service, target);
      const known = this.#jobs.get(target.id);
      if (known?.key === key) continue;
      if (known !== undefined) pause(known);
      const job = this.#jobOf(runtime, target, key);
      this.#jobs.set(target.id, job);
      added.push(job);
    }
    return added;
  }

  #jobOf(runtime: ServiceRuntime, target: TargetRuntime, key: string): Job {
    return {
      key,
      serviceId: runtime.id,
      rows: this.#rowsOf(runtime, target),
      spec: probeSpec(runtime.service, target),
      policy: runtime.service.health.active,
      timer: null,
      probe: null,
      verdict: 0,
      successes: 0,
    };
  }

  /** Results of checks that no longer run are cleared. Every worker does so; it is idempotent. */
  #removeTarget(runtime: ServiceRuntime, target: TargetRuntime): void {
    const job = this.#jobs.get(target.id);
    // The target may have moved to another service.
    if (job !== undefined && job.serviceId !== runtime.id) return;
    if (job !== undefined) pause(job);
    this.#jobs.delete(target.id);
    forgetChecks(this.#board, this.#rowsOf(runtime, target), Date.now());
  }

  #rowsOf(runtime: ServiceRuntime, target: TargetRuntime): HealthRows {
    return { target: target.row, service: this.#board.rowOf(runtime.id) };
  }

  /** Begins the checks when this worker gets the lease, and ends them when it has lost it. */
  #pollLease(): void {
    const leads = this.#lease.hold(Date.now());
    if (leads === this.#isLeading) return;
    if (!leads) return this.#pause();
    this.#isLeading = true;
    this.#begin([...this.#jobs.values()]);
  }

  #pause(): void {
    this.#isLeading = false;
    for (const job of this.#jobs.values()) pause(job);
  }

  #begin(jobs: readonly Job[]): void {
    const spread = jobs.length > SPREAD_FROM ? SPREAD_MS : 0;
    for (const job of jobs) this.#schedule(job, Math.random() * spread);
  }

  #schedule(job: Job, ms: number): void {
    job.timer = setTimeout(() => this.#check(job), ms);
  }

  #check(job: Job): void {
    job.timer = null;
    // The thread was blocked for so long that another worker may have taken over: wait for the next poll.
    if (!this.#lease.isHeld(Date.now())) return this.#schedule(job, LEASE_POLL_MS);
    const startedAt = performance.now();
    job.probe = new Probe(job.spec, (failure) => {
      job.probe = null;
      if (this.#lease.isHeld(Date.now())) this.#record(job, failure);
      const took = performance.now() - startedAt;
      this.#schedule(job, Math.max(MIN_PAUSE_MS, this.#pauseOf(job) - took));
    });
  }

  #record(job: Job, failure: Failure | null): void {
    const { rows, policy } = job;
    const board = this.#board;
    const now = Date.now();
    const thresholds = { healthy: policy.healthy_threshold, unhealthy: policy.unhealthy_threshold };
    if (failure !== null) {
      job.successes = 0;
      checkFailed(board, rows, { thresholds, failure, now });
      return;
    }
    checkSucceeded(board, rows, { thresholds, now });
    const verdict = this.#passiveVerdict(rows.target, now);
    if (verdict === 0) return;
    // Successes from before the traffic failed do not count.
    if (job.verdict !== verdict) job.successes = 0;
    job.verdict = verdict;
    if (++job.successes < thresholds.healthy) return;
    if (verdict > 0) endEjection(board, rows, now);
    else endFailing(board, rows, now);
  }

  /** Above 0: the end of its ejection. Below: minus its failures in a row while in use. 0: neither. */
  #passiveVerdict(row: number, now: number): number {
    const board = this.#board;
    const ejection = ejectedUntil(board, row, board.time(now));
    if (ejection !== 0) return ejection;
    return isFailing(board, row) ? -1 - board.get(row, "failures") : 0;
  }

  /** ±10 % jitter, so that gateways started together do not check in step. */
  #pauseOf({ rows, policy }: Job): number {
    const board = this.#board;
    const isDown =
      failsChecks(board, rows.target) ||
      ejectedUntil(board, rows.target, board.time(Date.now())) > 0;
    const seconds = isDown ? policy.unhealthy_interval : policy.interval;
    return seconds * 1000 * (0.9 + Math.random() * 0.2);
  }
}

function pause(job: Job): void {
  if (job.timer !== null) clearTimeout(job.timer);
  job.timer = null;
  job.probe?.stop();
  job.probe = null;
}

function keyOf(service: Service, { endpoint }: TargetRuntime): string {
  const { protocol, host_header: host, tls, health } = service;
  return JSON.stringify([health.active, protocol, host, tls, endpoint]);
}
