// Asks targets at intervals whether they work, in one worker of all; knows no request of a client.
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
  type TargetRows,
} from "../../shared-memory/target-health.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import { probeSpec } from "./check-request.ts";
import { Probe, type ProbeSpec } from "./probe.ts";

/** How often a worker looks whether it is the one that checks: several times in the three seconds of the lease. */
const LOOK_MS = 500;
/** More first checks than this are spread. */
const MANY = 20;
const SPREAD_MS = 1000;
/** Checks of one target are at least so far apart, however long one takes. */
const LEAST_PAUSE_MS = 100;

/** The checks of one target: every worker knows them, one makes them. */
interface Job {
  /** What the checks depend on. As long as it is the same, they go on undisturbed. */
  readonly key: string;
  readonly serviceId: string;
  readonly rows: TargetRows;
  readonly spec: ProbeSpec;
  readonly policy: Service["health"]["active"];
  timer: Timer | null;
  probe: Probe | null;
  /** Verdict of the traffic on the target, see `#verdictOf`, and how many checks have succeeded in a row since. */
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
  #look: Timer | null = null;
  #isLeading = false;

  constructor({ board, worker }: ActiveCheckOptions) {
    this.#board = board;
    this.#lease = new CheckLease(board, worker);
  }

  /** Another version is served: what did not change in it is checked on as before. */
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
    else this.#look ??= setInterval(() => this.#lookAgain(), LOOK_MS);
    if (this.#isLeading) this.#begin(added);
    else if (this.#jobs.size > 0) this.#lookAgain();
  }

  /** Ends all checks; another worker may take over at once. */
  stop(): void {
    if (this.#look !== null) clearInterval(this.#look);
    this.#look = null;
    this.#pause();
    this.#jobs.clear();
    this.#lease.release();
  }

  #removeMissing(old: ServiceRuntime, next: ServiceRuntime | undefined): void {
    const kept = new Set(next?.targets.map((target) => target.id));
    for (const target of old.targets) if (!kept.has(target.id)) this.#drop(old, target);
  }

  /** Checks that begin now because they are new or others than before. */
  #jobsOf(runtime: ServiceRuntime): Job[] {
    const isEnabled = runtime.service.health.active.enabled;
    const added: Job[] = [];
    for (const target of runtime.targets) {
      if (!isEnabled) {
        this.#drop(runtime, target);
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

  /** What checks have said does not hold for ever when nobody checks any more. Every worker says so, with one effect. */
  #drop(runtime: ServiceRuntime, target: TargetRuntime): void {
    const job = this.#jobs.get(target.id);
    // The target may belong to another service by now.
    if (job !== undefined && job.serviceId !== runtime.id) return;
    if (job !== undefined) pause(job);
    this.#jobs.delete(target.id);
    forgetChecks(this.#board, this.#rowsOf(runtime, target), Date.now());
  }

  #rowsOf(runtime: ServiceRuntime, target: TargetRuntime): TargetRows {
    return { target: target.row, service: this.#board.rowOf(runtime.id) };
  }

  /** Begins when the lease has fallen to this worker, and ends when it was lost. */
  #lookAgain(): void {
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
    const spread = jobs.length > MANY ? SPREAD_MS : 0;
    for (const job of jobs) this.#schedule(job, Math.random() * spread);
  }

  #schedule(job: Job, ms: number): void {
    job.timer = setTimeout(() => this.#check(job), ms);
  }

  #check(job: Job): void {
    job.timer = null;
    // Held up for so long that another worker may have begun: the next look tells.
    if (!this.#lease.isHeld(Date.now())) return this.#schedule(job, LOOK_MS);
    const startedAt = performance.now();
    job.probe = new Probe(job.spec, (failure) => {
      job.probe = null;
      if (this.#lease.isHeld(Date.now())) this.#take(job, failure);
      const took = performance.now() - startedAt;
      this.#schedule(job, Math.max(LEAST_PAUSE_MS, this.#pauseOf(job) - took));
    });
  }

  #take(job: Job, failure: Failure | null): void {
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
    const verdict = this.#verdictOf(rows.target, now);
    if (verdict === 0) return;
    // Successes from before the traffic failed say nothing about it.
    if (job.verdict !== verdict) job.successes = 0;
    job.verdict = verdict;
    if (++job.successes < thresholds.healthy) return;
    if (verdict > 0) endEjection(board, rows, now);
    else endFailing(board, rows, now);
  }

  /** Above 0: until when it is ejected. Below: how often it has failed in a row while it stayed in use. 0: nothing. */
  #verdictOf(row: number, now: number): number {
    const board = this.#board;
    const ejection = ejectedUntil(board, row, board.time(now));
    if (ejection !== 0) return ejection;
    return isFailing(board, row) ? -1 - board.get(row, "failures") : 0;
  }

  /** Ten per cent more or less, so that gateways that were started together do not check together for ever. */
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
