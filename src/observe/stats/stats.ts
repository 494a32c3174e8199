// The statistics of the dashboard: the last minute and the history; knows no memory, no SQL and no HTTP.
import type { Clock } from "../../clock.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { DAY, HOUR, MINUTE, type Span, type StatKind, statKinds } from "../../model/rollup.ts";
import { addressOf } from "../requests/request-view.ts";
import { RecentWindow, SLOT_MS } from "./recent-window.ts";
import { type Rollups, startOf } from "./rollups.ts";
import type { NodeRollups, RollupSender, SharedQuery, SharedRollups } from "./shared-rollups.ts";
import { addTallies, fromDocument, type Tally, TallySum, type TallyView, toView } from "./tally.ts";
import { type Counted, CountedMap, type TrafficDeltas } from "./traffic-deltas.ts";

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

/** What is open at the moment. */
interface OpenCounts {
  readonly in_flight: number;
  readonly open_websockets: number;
  readonly open_connections: number;
  readonly open_http2_streams: number;
}

interface ByObject {
  readonly by_route: readonly ObjectView[];
  readonly by_service: readonly ObjectView[];
  readonly by_target: readonly ObjectView[];
}

export interface PresentView extends TallyView, OpenCounts {
  /** Seconds of counting: a minute, less after a start. */
  readonly seconds: number;
  readonly requests_per_second: number;
  readonly bytes_in_per_second: number;
  readonly bytes_out_per_second: number;
}

export interface StatsView {
  readonly at: string;
  readonly now: PresentView & ByObject;
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

/** What one gateway has counted. */
export interface StatsPart extends OpenCounts {
  /** Of the counters in `now`: a minute, less after a start. */
  readonly seconds: number;
  /** The last minute. */
  readonly now: readonly Counted[];
  /** The history by the start of each point, in seconds since 1970. */
  readonly steps: ReadonlyMap<number, Tally>;
  /** The history of routes, services and targets. */
  readonly objects: readonly Counted[];
}

/** What a node has counted that cannot be read from it. */
export interface StoredPart extends Pick<NodeRollups, "id" | "name" | "until"> {
  readonly part: StatsPart;
}

export interface StatsOptions {
  /** The statistics in the database of the fleet; absent: there is none. */
  readonly shared?: { readonly rollups: SharedRollups; readonly sender: RollupSender } | null;
  readonly deltas: TrafficDeltas;
  readonly rollups: Rollups;
  readonly clock: Clock;
  readonly config: () => GatewayConfig;
  readonly present: () => OpenCounts;
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

  /** Resolves when all that is written has been sent to the other nodes, or cannot be. */
  async sent(): Promise<void> {
    await this.#options.shared?.sender.send();
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
    void this.sent();
  }

  read(query: StatsQuery): StatsView {
    return this.view(query, [this.part(query)]);
  }

  /** What this gateway has counted until now. */
  part(query: StatsQuery): StatsPart {
    this.count();
    const { seconds, counted } = this.#window.read();
    const time = timeOf(query.range, this.#countedAt);
    return {
      seconds,
      ...this.#options.present(),
      now: counted.all,
      ...historyOf(query, time, (key, during) => this.#options.rollups.range(key, during)),
    };
  }

  /** What the nodes that are not in `without` have counted, as far as it is in the database of the fleet. */
  async stored(query: StatsQuery, without: readonly string[]): Promise<readonly StoredPart[]> {
    const { shared = null } = this.#options;
    if (shared === null) return [];
    const time = timeOf(query.range, this.#countedAt);
    const queries = sharedQueries(query, time).map((one) => ({ ...one, without }));
    const found = (await Promise.all(queries.map((one) => shared.rollups.read(one)))).flat();
    return [...Map.groupBy(found, ({ id }) => id).values()].map((all) => partOf(query, time, all));
  }

  /** The sum of the parts of several gateways. */
  view({ range, top }: StatsQuery, parts: readonly StatsPart[]): StatsView {
    const now = this.#countedAt;
    return {
      at: new Date(now).toISOString(),
      now: this.#now(top, parts),
      history: this.#history({ range, top }, { now, parts }),
    };
  }

  #now(top: number, parts: readonly StatsPart[]): StatsView["now"] {
    const counted = new CountedMap();
    for (const part of parts) counted.addAll(part.now);
    const total = this.present(parts);
    const seconds = Math.max(1, ...parts.map((part) => part.seconds));
    return { ...total, ...this.#byObject((kind) => counted.of(kind), { top, seconds }) };
  }

  /** The last minute of all requests. */
  present(parts: readonly StatsPart[]): PresentView {
    const sum = (count: (part: StatsPart) => number) =>
      parts.reduce((total, part) => total + count(part), 0);
    const seconds = Math.max(1, ...parts.map((part) => part.seconds));
    const counted = parts.flatMap(({ now }) => now.filter(({ kind }) => kind === "total"));
    const total = toView(sumOf(counted));
    const perSecond = (count: number) => rate(count, seconds);
    return {
      ...total,
      seconds: Math.round(seconds),
      requests_per_second: perSecond(total.requests),
      bytes_in_per_second: perSecond(total.bytes_in),
      bytes_out_per_second: perSecond(total.bytes_out),
      in_flight: sum((part) => part.in_flight),
      open_websockets: sum((part) => part.open_websockets),
      open_connections: sum((part) => part.open_connections),
      open_http2_streams: sum((part) => part.open_http2_streams),
    };
  }

  #history(
    { range, top }: Pick<StatsQuery, "range" | "top">,
    { now, parts }: { readonly now: number; readonly parts: readonly StatsPart[] },
  ): StatsView["history"] {
    const { seconds, step } = ranges[range];
    const { from, to } = timeOf(range, now);
    const [steps, objects] = [new Map<number, Tally>(), new CountedMap()];
    for (const part of parts) {
      for (const [at, tally] of part.steps) addTo(steps, at, tally);
      objects.addAll(part.objects);
    }
    return {
      range,
      from: toDate(from),
      to: toDate(to),
      step_seconds: step,
      total: toView([...steps.values()].reduce(addTallies, NOTHING)),
      points: [...steps]
        .sort(([one], [other]) => one - other)
        .map(([at, tally]) => ({ at: toDate(at), ...toView(tally) })),
      ...this.#byObject((kind) => objects.of(kind), { top, seconds }),
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

const OBJECT_KINDS = statKinds.filter((kind) => kind !== "total");

/** Seconds since 1970. */
interface Time {
  /** Start of the first point. */
  readonly from: number;
  /** Start of the last point. */
  readonly to: number;
  readonly now: number;
}

function timeOf(range: StatsRange, now: number): Time {
  const { seconds, step } = ranges[range];
  const to = startOf(now, step);
  return { from: to - seconds + step, to, now: Math.floor(now / 1000) };
}

/** Rows of a key and a time, oldest first. */
type Range = (...of: Parameters<Rollups["range"]>) => ReturnType<Rollups["range"]>;

function historyOf(
  { range, subject }: StatsQuery,
  { from, now }: Time,
  read: Range,
): Pick<StatsPart, "steps" | "objects"> {
  const { points: span, step, objects: objectSpan } = ranges[range];
  const key =
    subject === null
      ? ({ span, kind: "total" } as const)
      : { span, kind: subject.kind, object_id: subject.id };
  const steps = new Map<number, Tally>();
  for (const { at, counted } of read(key, { from, to: now }))
    addTo(steps, startOf(at * 1000, step), sumOf(counted));
  const objects = new CountedMap();
  const time = { from: startOf(from * 1000, objectSpan), to: now };
  for (const kind of OBJECT_KINDS)
    for (const row of read({ span: objectSpan, kind }, time)) objects.addAll(row.counted);
  return { steps, objects: objects.all };
}

/** What `historyOf` reads. */
function sharedQueries(
  { range, subject }: StatsQuery,
  { from, now }: Time,
): Omit<SharedQuery, "without">[] {
  const { points, objects } = ranges[range];
  return [
    { span: points, kinds: [subject?.kind ?? "total"], from, to: now },
    { span: objects, kinds: OBJECT_KINDS, from: startOf(from * 1000, objects), to: now },
  ];
}

/** `found`: of one node, from each query; one may hold rows of the other as well. */
function partOf(query: StatsQuery, time: Time, found: readonly NodeRollups[]): StoredPart {
  const last = found.reduce((one, other) => (other.until > one.until ? other : one));
  const rows = new Map(
    found
      .flatMap((node) => node.rows)
      .map((row) => [`${row.span} ${row.at} ${row.kind} ${row.object_id}`, row]),
  );
  const read: Range = (key, { from, to }) =>
    [...rows.values()]
      .filter(
        ({ span, kind, at }) => span === key.span && kind === key.kind && at >= from && at <= to,
      )
      .filter(({ object_id: id }) => key.object_id === undefined || key.object_id === id)
      .map(({ at, kind, object_id: id, document }) => ({
        at,
        counted: [{ kind, id, name: document.name, tally: fromDocument(document) }],
      }));
  const part = { seconds: 0, ...NOTHING_OPEN, now: [] };
  const { id, name, until } = last;
  return { id, name, until, part: { ...part, ...historyOf(query, time, read) } };
}

const NOTHING_OPEN: OpenCounts = {
  in_flight: 0,
  open_websockets: 0,
  open_connections: 0,
  open_http2_streams: 0,
};

function addTo(steps: Map<number, Tally>, at: number, tally: Tally): void {
  const known = steps.get(at);
  steps.set(at, known === undefined ? tally : addTallies(known, tally));
}

const NOTHING: Tally = new TallySum();

const sumOf = (counted: readonly Counted[]): Tally =>
  counted.map(({ tally }) => tally).reduce(addTallies, NOTHING);

const rate = (count: number, seconds: number) => Math.round((count / seconds) * 1000) / 1000;

const toDate = (seconds: number) => new Date(seconds * 1000).toISOString();
