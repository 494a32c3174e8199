// The statistics of the dashboard: the last minute and the history; knows no memory, no SQL and no HTTP.
import type { Clock } from "../../clock.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { emptyHistogram } from "../../shared-memory/histogram.ts";
import { addressOf } from "../requests/request-view.ts";
import { RecentWindow, SLOT_MS } from "./recent-window.ts";
import { DAY, HOUR, MINUTE, type Rollups, type Span, startOf } from "./rollups.ts";
import { addTallies, type Tally, type TallyView, toView } from "./tally.ts";
import { type Counted, CountedMap, type StatKind, type TrafficDeltas } from "./traffic-deltas.ts";

/** Ranges of the history: the span of the rows of points and objects, and the seconds per point. */
export const ranges = {
  "1h": { seconds: 3600, points: MINUTE, step: 60, objects: MINUTE },
  "24h": { seconds: 86_400, points: MINUTE, step: 300, objects: HOUR },
  "30d": { seconds: 30 * 86_400, points: HOUR, step: 3600, objects: DAY },
} as const satisfies Record<string, { seconds: number; points: Span; step: number; objects: Span }>;
export type StatsRange = keyof typeof ranges;

/** An object of the configuration, or `_other` and `_none`. */
export interface ObjectView extends TallyView {
  readonly id: string;
  /** The current name, or the last one of a deleted object. */
  readonly name: string;
  readonly requests_per_second: number;
}

export interface PointView extends TallyView {
  /** RFC 3339: its start. */
  readonly at: string;
}

interface ByObject {
  readonly by_route: readonly ObjectView[];
  readonly by_service: readonly ObjectView[];
  readonly by_target: readonly ObjectView[];
}

export interface StatsView {
  readonly at: string;
  readonly now: TallyView &
    ByObject & {
      /** Seconds of counting: a minute, less after a start. */
      readonly seconds: number;
      readonly requests_per_second: number;
      readonly bytes_in_per_second: number;
      readonly bytes_out_per_second: number;
      readonly in_flight: number;
      readonly open_websockets: number;
    };
  readonly history: ByObject & {
    readonly range: StatsRange;
    readonly from: string;
    readonly to: string;
    readonly step_seconds: number;
    readonly total: TallyView;
    /** Only points with traffic, oldest first. */
    readonly points: readonly PointView[];
  };
}

/** The object of a history. */
export interface StatsSubject {
  readonly kind: Exclude<StatKind, "total">;
  readonly id: string;
}

export interface StatsQuery {
  readonly range: StatsRange;
  /** Maximum number of listed objects of a kind. */
  readonly top: number;
  readonly subject: StatsSubject | null;
}

export interface StatsOptions {
  readonly deltas: TrafficDeltas;
  readonly rollups: Rollups;
  readonly clock: Clock;
  readonly config: () => GatewayConfig;
  readonly present: () => { readonly in_flight: number; readonly open_websockets: number };
}

export class Stats {
  readonly #options: StatsOptions;
  readonly #window = new RecentWindow();
  #countedAt: number;
  #timer: Timer | null = null;

  constructor(options: StatsOptions) {
    this.#options = options;
    this.#countedAt = options.clock.now();
  }

  /** Counts every ten seconds, aligned to the clock, so that slots do not cross minutes. */
  start(): void {
    const pause = SLOT_MS - (this.#options.clock.now() % SLOT_MS);
    this.#timer = setTimeout(() => {
      this.count();
      this.start();
    }, pause);
    this.#timer.unref();
  }

  /** Writes the remaining counters. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.count();
    this.#options.rollups.write({ isEnd: true });
  }

  /** Adds the traffic since the last call, and writes past minutes. */
  count(): void {
    const { deltas, rollups, clock } = this.#options;
    const now = clock.now();
    const counted = deltas.take();
    this.#window.add(counted, this.#countedAt, now);
    rollups.add(counted, this.#countedAt, now);
    this.#countedAt = now;
    rollups.write();
  }

  read({ range, top, subject }: StatsQuery): StatsView {
    this.count();
    const now = this.#countedAt;
    return {
      at: new Date(now).toISOString(),
      now: this.#now(top),
      history: this.#history({ range, top, subject }, now),
    };
  }

  #now(top: number): StatsView["now"] {
    const { seconds, counted } = this.#window.read();
    const total = toView(sumOf(counted.of("total")));
    const perSecond = (count: number) => rate(count, seconds);
    return {
      ...total,
      seconds: Math.round(seconds),
      requests_per_second: perSecond(total.requests),
      bytes_in_per_second: perSecond(total.bytes_in),
      bytes_out_per_second: perSecond(total.bytes_out),
      ...this.#options.present(),
      ...this.#byObject((kind) => counted.of(kind), { top, seconds }),
    };
  }

  #history({ range, top, subject }: StatsQuery, now: number): StatsView["history"] {
    const { seconds, points: span, step, objects } = ranges[range];
    const { rollups } = this.#options;
    const to = startOf(now, step);
    const time = { from: to - seconds + step, to: Math.floor(now / 1000) };
    const key =
      subject === null
        ? ({ span, kind: "total" } as const)
        : { span, kind: subject.kind, object_id: subject.id };
    const byStep = new Map<number, Tally>();
    for (const { at, counted } of rollups.range(key, time)) {
      const start = startOf(at * 1000, step);
      const known = byStep.get(start);
      const sum = sumOf(counted);
      byStep.set(start, known === undefined ? sum : addTallies(known, sum));
    }
    const objectTime = { from: startOf(time.from * 1000, objects), to: time.to };
    const counted = (kind: StatKind) => {
      const found = new CountedMap();
      for (const row of rollups.range({ span: objects, kind }, objectTime))
        found.addAll(row.counted);
      return found.of(kind);
    };
    return {
      range,
      from: toDate(time.from),
      to: toDate(time.to),
      step_seconds: step,
      total: toView([...byStep.values()].reduce(addTallies, NOTHING)),
      points: [...byStep].map(([at, tally]) => ({ at: toDate(at), ...toView(tally) })),
      ...this.#byObject(counted, { top, seconds }),
    };
  }

  #byObject(
    of: (kind: StatKind) => readonly Counted[],
    { top, seconds }: { readonly top: number; readonly seconds: number },
  ): ByObject {
    const list = (kind: StatKind) =>
      [...of(kind)]
        .sort((a, b) => b.tally.requests - a.tally.requests)
        .slice(0, top)
        .map(({ id, name, tally }) => ({
          id,
          name: this.#nameOf(kind, id) ?? name,
          requests_per_second: rate(tally.requests, seconds),
          ...toView(tally),
        }));
    return { by_route: list("route"), by_service: list("service"), by_target: list("target") };
  }

  /** The current name of an existing object: it may have been renamed since. */
  #nameOf(kind: StatKind, id: string): string | null {
    const { routes, services, targets } = this.#options.config();
    if (kind === "route") return routes.get(id)?.name ?? null;
    if (kind === "service") return services.get(id)?.name ?? null;
    const target = targets.get(id);
    return target === undefined ? null : addressOf(target);
  }
}

const NOTHING: Tally = {
  requests: 0,
  errors: 0,
  client_errors: 0,
  aborted_responses: 0,
  retries: 0,
  bytes_in: 0,
  bytes_out: 0,
  latency: emptyHistogram(),
};

const sumOf = (counted: readonly Counted[]): Tally =>
  counted.map(({ tally }) => tally).reduce(addTallies, NOTHING);

const rate = (count: number, seconds: number) => Math.round((count / seconds) * 1000) / 1000;

const toDate = (seconds: number) => new Date(seconds * 1000).toISOString();
