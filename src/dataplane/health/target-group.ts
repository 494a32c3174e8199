// The targets of one service as one worker uses them: who may be chosen now, who is chosen, how busy they are; knows no HTTP.
import type { Service } from "../../model/service.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { deposit, withdraw } from "../../shared-memory/retry-budget.ts";
import { isForbidden, isUnhealthy, nextTurn } from "../../shared-memory/target-health.ts";
import { createBalancer } from "../balancer/algorithms.ts";
import type { Balancer, Candidate, Load, PickRequest } from "../balancer/balancer.ts";
import { PassiveCheck } from "./passive-check.ts";

/** A target with its place on the board, which it has once its version is served. */
export interface Grouped extends Candidate {
  row: number;
  /** Of the row when the target was given it. */
  epoch: number;
  /** Tier: those with a higher number are used when all lower ones are down. */
  readonly priority: number;
}

export interface GroupContext {
  readonly board: TargetBoard;
  readonly worker: number;
}

/** The row of what has none yet. */
export const NO_ROW = -1;

/** Time constant of the average latency in milliseconds. */
const LATENCY_DECAY_MS = 10_000;
/** The least part of its weight that a target starts with. */
const LEAST_WARMTH = 0.1;

/** A view of shared state: several workers, and several versions of a service, use the same rows. */
export class TargetGroup<T extends Grouped> {
  readonly passive: PassiveCheck;
  readonly #service: Service;
  readonly #context: GroupContext;
  readonly #all: readonly T[];
  #row = NO_ROW;
  /** Those with a weight: the others are being drained. */
  readonly #targets: readonly T[];
  readonly #load: Load<T>;
  /** One balancer for each tier that has a healthy target, the first to be used first. */
  #tiers: readonly Balancer<T>[] = [];
  /** Over those that are unhealthy, but not because a person said so. */
  #others: Balancer<T> | null = null;
  #version = -1;
  /** In the board's time: until when the tiers are right if nothing is noted. */
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
  }

  /** Takes the rows of the service and its targets on the board. Runs once, before anything else is asked of the group. */
  claim(): void {
    const { board } = this.#context;
    this.#row = board.rowOf(this.#service.id);
    for (const target of this.#all) {
      target.row = board.rowOf(target.id);
      target.epoch = board.get(target.row, "epoch");
    }
  }

  /** The target for a request; null: none may take it. */
  pick(request: PickRequest): T | null {
    const { board } = this.#context;
    const time = board.time(Date.now());
    if (time >= this.#validUntil || board.get(this.#row, "version") !== this.#version)
      this.#look(time);
    for (const tier of this.#tiers) {
      const target = tier.pick(request);
      if (target !== null) return target;
    }
    // The healthy ones have failed this request: one that was set aside may work again.
    return request.tried === null ? null : (this.#others?.pick(request) ?? null);
  }

  /** When `pick` found none for a new request: whether that is only because all that could be used are full. */
  get isFull(): boolean {
    return this.#tiers.length > 0;
  }

  /** Whether a target may still be chosen, for one that a client wants to stay with. */
  isUsable(target: T): boolean {
    const { board } = this.#context;
    return !isUnhealthy(board, target.row, board.time(Date.now())) && !this.#load.isFull(target);
  }

  /** Pays into the budget of retries for one request. */
  deposit(percent: number): void {
    deposit(this.#context.board, this.#row, percent);
  }

  /** Takes a retry out of the budget; false when it is used up. */
  withdraw(percent: number): boolean {
    return withdraw(this.#context.board, this.#row, { percent, now: Date.now() });
  }

  /** A request begins on the target. False: it must not, because others were faster and it is full, or it was deleted. */
  enter(target: T): boolean {
    const { board, worker } = this.#context;
    const before = board.enter(target.row, worker);
    const most = this.#service.max_connections_per_target;
    const isFull = most > 0 && before >= most;
    // Deleted long ago, the request of an old version comes back for another attempt: the row may be somebody else's.
    if (!isFull && board.get(target.row, "epoch") === target.epoch) return true;
    board.leave(target.row, worker);
    return false;
  }

  /** It has ended. */
  leave(target: T): void {
    this.#context.board.leave(target.row, this.#context.worker);
  }

  /** Whether anybody asks how long answers take. */
  get needsLatency(): boolean {
    return this.#service.algorithm === "ewma";
  }

  /** Adds to the average: a slower answer counts at once, a faster one little by little (peak EWMA). */
  took(target: T, milliseconds: number): void {
    const { board } = this.#context;
    const { row } = target;
    const now = board.time(Date.now());
    const micros = Math.max(1, Math.round(milliseconds * 1000));
    const average = board.get(row, "latency");
    const elapsed = (now - board.get(row, "latency_at")) * 100;
    const kept = Math.exp(-Math.max(elapsed, 10) / LATENCY_DECAY_MS);
    const next = micros > average ? micros : average * kept + micros * (1 - kept);
    board.set(row, "latency", Math.max(1, Math.round(next)));
    board.set(row, "latency_at", now);
  }

  #look(time: number): void {
    const { board } = this.#context;
    this.#version = board.get(this.#row, "version");
    this.#validUntil = Number.POSITIVE_INFINITY;
    for (const { row } of this.#targets)
      this.#validUntil = Math.min(this.#validUntil, nextTurn(board, row, time));
    const lists = this.#healthyTiers(time);
    const { algorithm } = this.#service;
    this.#tiers = lists.map((list) => createBalancer(algorithm, list, this.#load));
    const others = this.#targets.filter(
      ({ row }) => isUnhealthy(board, row, time) && !isForbidden(board, row, time),
    );
    this.#others = others.length === 0 ? null : createBalancer(algorithm, others, this.#load);
  }

  #healthyTiers(time: number): readonly (readonly T[])[] {
    const { board } = this.#context;
    const allowed = this.#targets.filter(({ row }) => !isForbidden(board, row, time));
    const tiers = Map.groupBy(allowed, (target) => target.priority);
    const lists: (readonly T[])[] = [];
    for (const [, targets] of [...tiers].sort(([a], [b]) => a - b)) {
      const healthy = targets.filter((target) => !isUnhealthy(board, target.row, time));
      if (healthy.length === 0) continue;
      const percent = (healthy.length / targets.length) * 100;
      // So few are left that they would break down under the load of all: health is ignored.
      lists.push(percent < this.#service.health.panic_percent ? targets : healthy);
    }
    if (lists.length > 0) return lists;
    // All are unhealthy: to try is better than to refuse, and those that a person has taken out come last.
    const last = allowed.length > 0 ? allowed : this.#targets;
    return last.length > 0 ? [last] : [];
  }

  #loadOf(service: Service): Load<T> {
    const { board } = this.#context;
    const { max_connections_per_target: most, slow_start: slowStart } = service;
    return {
      active: (target) => board.active(target.row),
      latency: (target) => board.get(target.row, "latency"),
      warmth: slowStart === 0 ? () => 1 : (target) => warmthOf(board, target.row, slowStart),
      isFull: most === 0 ? () => false : (target) => board.active(target.row) >= most,
      nextTurn: () => board.add(this.#row, "turn", 1) & 0x7fff_ffff,
      random: Math.random,
    };
  }
}

/** Grows from a tenth to all of the weight over the time since the target appeared or recovered. */
function warmthOf(board: TargetBoard, row: number, slowStart: number): number {
  const now = Date.now();
  const time = board.time(now);
  const ejectedUntil = board.get(row, "ejected_until");
  const startedAt = Math.max(board.get(row, "started_at"), ejectedUntil <= time ? ejectedUntil : 0);
  return Math.min(1, Math.max(LEAST_WARMTH, (now - board.date(startedAt)) / slowStart));
}
