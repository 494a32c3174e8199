// The targets of one service as one worker balances over them: health tiers, selection, load; knows no HTTP.
import type { Service } from "../../model/service.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { deposit, withdraw } from "../../shared-memory/retry-budget.ts";
import {
  isForcedUnhealthy,
  isUnhealthy,
  nextStateChange,
  outcomes,
} from "../../shared-memory/target-health.ts";
import { createBalancer } from "../balancer/algorithms.ts";
import type { Balancer, BalancerTarget, Load, PickRequest } from "../balancer/balancer.ts";
import { PassiveCheck } from "./passive-check.ts";

/** A target with its row on the board, assigned when its version becomes active. */
export interface GroupTarget extends BalancerTarget {
  row: number;
  /** The row's epoch at that time. */
  epoch: number;
  /** Tier: higher numbers are used when all lower ones are down. */
  readonly priority: number;
}

export interface GroupContext {
  readonly board: TargetBoard;
  readonly worker: number;
}

/** Not assigned yet. */
export const NO_ROW = -1;

/** Time constant of the average latency in milliseconds. */
const LATENCY_DECAY_MS = 10_000;
/** Part of its weight that a target begins a slow start with. */
const MIN_SLOW_START_FACTOR = 0.1;

/** A view of shared state: several workers, and several versions of a service, use the same rows. */
export class TargetGroup<T extends GroupTarget> {
  readonly passive: PassiveCheck;
  readonly #service: Service;
  readonly #context: GroupContext;
  readonly #all: readonly T[];
  #row = NO_ROW;
  /** Targets with a weight above 0: the others are drained. */
  readonly #targets: readonly T[];
  readonly #load: Load<T>;
  /** One balancer for each tier with a healthy target, in order of use. */
  #tiers: readonly Balancer<T>[] = [];
  /** Over unhealthy targets without an override. */
  #others: Balancer<T> | null = null;
  /** The target of requests that have failed on none, where there is no choice; null: there is one. */
  #only: T | null = null;
  /** Whether the algorithm uses latencies. */
  readonly needsLatency: boolean;
  #version = -1;
  /** Board time until which the tiers are valid if no change is noted. */
  #validUntil = 0;

  constructor(service: Service, targets: readonly T[], context: GroupContext) {
    this.#service = service;
    this.#context = context;
    this.#all = targets;
    this.#targets = targets.filter((target) => target.weight > 0);
    this.passive = new PassiveCheck(service.health.passive, context.board, () => ({
      service: this.#row,
      targets: this.#targets.map((target) => target.row),
    }));
    this.#load = this.#loadOf(service);
    this.needsLatency = service.algorithm === "ewma";
  }

  /** Claims rows on the board for the service and its targets. Call it once, before anything else. */
  claim(): void {
    const { board } = this.#context;
    this.#row = board.rowOf(this.#service.id);
    for (const target of this.#all) {
      target.row = board.rowOf(target.id);
      target.epoch = board.get(target.row, "epoch");
    }
  }

  /** Selects the target for a request; null: none is available. */
  pick(request: PickRequest): T | null {
    const { board } = this.#context;
    const isTimed = this.#validUntil !== Number.POSITIVE_INFINITY;
    const time = isTimed ? board.time(Date.now()) : 0;
    if (time >= this.#validUntil || board.get(this.#row, "version") !== this.#version)
      this.#rebuild(board.time(Date.now()));
    if (this.#only !== null && request.tried === null) return this.#only;
    for (const tier of this.#tiers) {
      const target = tier.pick(request);
      if (target !== null) return target;
    }
    // All healthy targets have failed this request: an unhealthy one may work again.
    return request.tried === null ? null : (this.#others?.pick(request) ?? null);
  }

  /** When `pick` found none for a new request: whether that is because all available targets are full. */
  get isFull(): boolean {
    return this.#tiers.length > 0;
  }

  /** Whether a sticky client may stay on the target. */
  isUsable(target: T): boolean {
    const { board } = this.#context;
    return !isUnhealthy(board, target.row, board.time(Date.now())) && !this.#load.isFull(target);
  }

  /** Adds one request's share to the retry budget. */
  deposit(percent: number): void {
    const { board } = this.#context;
    if (board.get(this.#row, "spent") > 0) deposit(board, this.#row, percent);
  }

  /** Takes a retry from the budget; false when it is exhausted. */
  withdraw(percent: number): boolean {
    return withdraw(this.#context.board, this.#row, { percent, now: Date.now() });
  }

  /** Counts a request on the target. False: another worker has filled it, or it was deleted. */
  enter(target: T): boolean {
    const { board, worker } = this.#context;
    const before = board.enter(target.row, worker);
    const most = this.#service.max_connections_per_target;
    const isFull = most > 0 && before >= most;
    // A retry in an old version may meet a deleted target, whose row may belong to another one now.
    if (!isFull && board.get(target.row, "epoch") === target.epoch) return true;
    board.leave(target.row, worker);
    return false;
  }

  /** The request has ended. */
  leave(target: T): void {
    this.#context.board.leave(target.row, this.#context.worker);
  }

  /** The target has responded; counts once for each response. */
  responded({ row }: T, status: number): void {
    const { passive } = this;
    if (passive.statuses.has(status) || !this.#context.board.isAt(row, outcomes.works))
      passive.responded(row, status);
  }

  /** Peak EWMA: a slower response counts at once, a faster one gradually. */
  recordLatency(target: T, milliseconds: number): void {
    const { board } = this.#context;
    const { row } = target;
    const now = board.time(Date.now());
    const micros = Math.max(1, Math.round(milliseconds * 1000));
    const average = board.get(row, "latency");
    const elapsed = (now - board.get(row, "latency_at")) * 100;
    const decay = Math.exp(-Math.max(elapsed, 10) / LATENCY_DECAY_MS);
    const next = micros > average ? micros : average * decay + micros * (1 - decay);
    board.set(row, "latency", Math.max(1, Math.round(next)));
    board.set(row, "latency_at", now);
  }

  #rebuild(time: number): void {
    const { board } = this.#context;
    this.#version = board.get(this.#row, "version");
    this.#validUntil = Number.POSITIVE_INFINITY;
    for (const { row } of this.#targets)
      this.#validUntil = Math.min(this.#validUntil, nextStateChange(board, row, time));
    const lists = this.#healthyTiers(time);
    const { algorithm, max_connections_per_target: most } = this.#service;
    this.#tiers = lists.map((list) => createBalancer(algorithm, list, this.#load));
    const [list = []] = lists;
    const hasChoice = lists.length > 1 || list.length !== 1 || most > 0;
    this.#only = hasChoice ? null : (list[0] ?? null);
    const others = this.#targets.filter(
      ({ row }) => isUnhealthy(board, row, time) && !isForcedUnhealthy(board, row, time),
    );
    this.#others = others.length === 0 ? null : createBalancer(algorithm, others, this.#load);
  }

  #healthyTiers(time: number): readonly (readonly T[])[] {
    const { board } = this.#context;
    const allowed = this.#targets.filter(({ row }) => !isForcedUnhealthy(board, row, time));
    const tiers = Map.groupBy(allowed, (target) => target.priority);
    const lists: (readonly T[])[] = [];
    for (const [, targets] of [...tiers].sort(([a], [b]) => a - b)) {
      const healthy = targets.filter((target) => !isUnhealthy(board, target.row, time));
      if (healthy.length === 0) continue;
      const percent = (healthy.length / targets.length) * 100;
      // Panic mode: so few are left that they would break down under the load of all.
      lists.push(percent < this.#service.health.panic_percent ? targets : healthy);
    }
    if (lists.length > 0) return lists;
    // All are unhealthy: trying is better than refusing; targets with an override come last.
    const last = allowed.length > 0 ? allowed : this.#targets;
    return last.length > 0 ? [last] : [];
  }

  #loadOf(service: Service): Load<T> {
    const { board } = this.#context;
    const { max_connections_per_target: most, slow_start: slowStart } = service;
    return {
      active: (target) => board.active(target.row),
      latency: (target) => board.get(target.row, "latency"),
      slowStartFactor:
        slowStart === 0 ? () => 1 : (target) => slowStartFactorOf(board, target.row, slowStart),
      isFull: most === 0 ? () => false : (target) => board.active(target.row) >= most,
      nextTurn: () => board.add(this.#row, "turn", 1) & 0x7fff_ffff,
      random: Math.random,
    };
  }
}

/** Grows from MIN_SLOW_START_FACTOR to 1 over the slow start since the target was added or recovered. */
function slowStartFactorOf(board: TargetBoard, row: number, slowStart: number): number {
  const now = Date.now();
  const time = board.time(now);
  const ejectedUntil = board.get(row, "ejected_until");
  const startedAt = Math.max(board.get(row, "started_at"), ejectedUntil <= time ? ejectedUntil : 0);
  return Math.min(1, Math.max(MIN_SLOW_START_FACTOR, (now - board.date(startedAt)) / slowStart));
}
