// What a gateway has counted as plain data, for another node of its fleet to add up; reads no counter.
import { type TallyDocument, type StatKind, statKinds } from "../../model/rollup.ts";
import type { StatsPart } from "./stats.ts";
import { fromDocument, toDocument } from "./tally.ts";
import { type Counted, CountedMap, OTHERS } from "./traffic-deltas.ts";

type CountedDocument = readonly [kind: StatKind, id: string, name: string, tally: TallyDocument];

export interface PartDocument extends Omit<StatsPart, "now" | "steps" | "objects"> {
  readonly now: readonly CountedDocument[];
  readonly steps: readonly (readonly [at: number, tally: TallyDocument])[];
  readonly objects: readonly CountedDocument[];
}

/** Of each kind; the others are one. */
const MAX_OBJECTS = 200;

export const toPartDocument = (part: StatsPart): PartDocument => ({
  ...part,
  now: bounded(part.now),
  steps: [...part.steps].map(([at, tally]) => [at, toDocument(tally)]),
  objects: bounded(part.objects),
});

/** Throws a TypeError for what is no such document. */
export function fromPartDocument(document: unknown): StatsPart {
  const { seconds, in_flight, open_websockets, now, steps, objects } = document as PartDocument;
  // Nodes of earlier versions do not count these.
  const { open_connections = 0, open_http2_streams = 0 } = document as PartDocument;
  return {
    seconds: count(seconds),
    in_flight: count(in_flight),
    open_websockets: count(open_websockets),
    open_connections: count(open_connections),
    open_http2_streams: count(open_http2_streams),
    now: now.map(toCounted),
    steps: new Map(steps.map(([at, tally]) => [count(at), toTally(tally)])),
    objects: objects.map(toCounted),
  };
}

function bounded(all: readonly Counted[]): CountedDocument[] {
  const found = new CountedMap();
  for (const kind of statKinds) {
    const counted = all.filter((one) => one.kind === kind);
    counted.sort((a, b) => b.tally.requests - a.tally.requests);
    found.addAll(counted.slice(0, MAX_OBJECTS));
    for (const one of counted.slice(MAX_OBJECTS)) found.add({ ...one, id: OTHERS, name: OTHERS });
  }
  return found.all.map(({ kind, id, name, tally }) => [kind, id, name, toDocument(tally)]);
}

function toCounted([kind, id, name, tally]: CountedDocument): Counted {
  if (!statKinds.includes(kind) || typeof id !== "string" || typeof name !== "string")
    throw new TypeError("not an object with counters");
  return { kind, id, name, tally: toTally(tally) };
}

function toTally(document: TallyDocument) {
  const { buckets, ...counts } = document;
  for (const value of [...Object.values(counts), ...buckets]) count(value);
  return fromDocument(document);
}

function count(value: number): number {
  if (typeof value !== "number" || !(value >= 0) || value > Number.MAX_SAFE_INTEGER)
    throw new TypeError("not a count");
  return value;
}
