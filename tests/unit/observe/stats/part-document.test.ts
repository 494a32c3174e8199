// What a node has counted survives the way to another node, within its bounds; what is no such document is refused.
import { expect, test } from "bun:test";
import { fromPartDocument, toPartDocument } from "../../../../src/observe/stats/part-document.ts";
import type { StatsPart } from "../../../../src/observe/stats/stats.ts";
import { fromDocument } from "../../../../src/observe/stats/tally.ts";
import type { Counted } from "../../../../src/observe/stats/traffic-deltas.ts";

const tally = (requests: number) =>
  fromDocument({ requests, bytes_in: 3, sum_us: 100 * requests, buckets: [20, requests] });

const routes = (count: number): Counted[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ kind: "route", id: `r${index}`, name: `route ${index}`, tally: tally(index + 1) },
  }));

const partOf = (objects: readonly Counted[]): StatsPart => ({
  seconds: 59.5,
  in_flight: 2,
  open_websockets: 1,
  open_connections: 9,
  open_http2_streams: 4,
  now: [{ kind: "total", id: "", name: "", tally: tally(5) }],
  steps: new Map([[1_800_000_000, tally(7)]]),
  objects,
});

const sent = (part: StatsPart) =>
  fromPartDocument(JSON.parse(JSON.stringify(toPartDocument(part))));

const counts = ({ objects }: StatsPart) => objects.map(({ id, tally }) => [id, tally.requests]);

test("all counters and histograms arrive", () => {
  const part = partOf(routes(2));
  const { now, steps, objects, ...rest } = sent(part);
  expect(rest).toEqual({
    seconds: 59.5,
    in_flight: 2,
    open_websockets: 1,
    open_connections: 9,
    open_http2_streams: 4,
  });
  expect(now[0]?.tally).toEqual(tally(5));
  expect(steps.get(1_800_000_000)).toEqual(tally(7));
  expect(counts({ ...part, objects })).toEqual([
    ["r1", 2],
    ["r0", 1],
  ]);
});

test("200 objects of a kind have rows; more are one", () => {
  expect(sent(partOf(routes(200))).objects).toHaveLength(200);
  const more = counts(sent(partOf(routes(202))));
  expect(more).toHaveLength(201);
  expect(more.at(-1)).toEqual(["_other", 3]);
});

test("what is no such document is refused", () => {
  const valid = toPartDocument(partOf(routes(1)));
  for (const wrong of [
    null,
    [],
    {},
    { ...valid, seconds: "1" },
    { ...valid, in_flight: -1 },
    { ...valid, in_flight: Number.NaN },
    { ...valid, now: {} },
    { ...valid, now: [["nothing", "", "", valid.steps[0]?.[1]]] },
    { ...valid, now: [["route", 1, "", valid.steps[0]?.[1]]] },
    { ...valid, steps: [[0, { requests: "9", buckets: [] }]] },
    { ...valid, steps: [[0, { requests: 9, buckets: ["1", 2] }]] },
    { ...valid, steps: [[0, { requests: 9 }]] },
  ])
    expect(() => fromPartDocument(wrong)).toThrow(TypeError);
});

test("a node of an earlier version counts no connections", () => {
  const { open_connections: _, open_http2_streams: __, ...document } = toPartDocument(partOf([]));
  const { open_connections, open_http2_streams } = fromPartDocument(document);
  expect([open_connections, open_http2_streams]).toEqual([0, 0]);
});
