// The endpoint of traffic statistics: decodes the query; knows no counter.
import type { Changes } from "../../control/change.ts";
import type { Observation } from "../../observe/observation.ts";
import { ALL_NODES, nodesOf, type ReadableNode } from "../../control/node-reads.ts";
import { fromPartDocument, toPartDocument } from "../../observe/stats/part-document.ts";
import {
  ranges,
  type Stats,
  type StatsQuery,
  type StatsRange,
  type StatsSubject,
  type StoredPart,
} from "../../observe/stats/stats.ts";
import { ApiError } from "../../model/error.ts";
import { errorResponses, queryParameter } from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { NODE_PARAMETER } from "../node-reader.ts";
import {
  type AskedNodes,
  askedNodes,
  eitherContent,
  type FleetSource,
  nodeParameter,
  readNodes,
} from "../node-view.ts";
import { requireKnownQuery } from "../write-options.ts";

const DEFAULT_TOP = 10;
const MAX_TOP = 40;

const subjects = ["route", "service", "target"] as const;

const path = "/api/v1/stats";

export function statsEndpoints({
  observation: { stats },
  changes,
  ...fleet
}: FleetSource & {
  readonly observation: Observation;
  readonly changes: Changes;
}): Endpoint[] {
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description,
      answer: async (call) => {
        requireKnownQuery(call, ["range", "top", NODE_PARAMETER, ...subjects]);
        const subject = subjectOf(call, changes);
        const query = { range: rangeOf(call), top: topOf(call), subject };
        // Percentiles of several nodes need their histograms.
        if (call.principal.method === "node") return { body: toPartDocument(stats.part(query)) };
        const nodes = askedNodes(call, fleet);
        if (nodes === null) return { body: stats.read(query) };
        return { body: await viewOfNodes(nodes, call, { stats, query }) };
      },
    },
  ];
}

interface Asked {
  readonly stats: Stats;
  readonly query: StatsQuery;
}

/** Nodes that do not respond, or are no longer in the fleet, have left their history in its database. */
async function viewOfNodes(nodes: AskedNodes, call: Call, { stats, query }: Asked) {
  const { reads } = nodes.fleet;
  const { asked } = nodes;
  const isAll = asked === ALL_NODES;
  const isNamed = ({ id, name }: ReadableNode) => id === asked || name === asked;
  // Once: who has responded must not count as gone when it leaves meanwhile.
  const known = reads.nodes();
  const isGone = !isAll && !known.some(isNamed);
  const wanted = isGone ? [] : nodesOf(reads, asked);
  const reading = { path, own: () => stats.part(query), decode: fromPartDocument };
  const read = async () => await readNodes(nodes, call, reading);
  const { found, missing, partial } = isGone ? NOTHING : await read();
  const silent = wanted.filter((node) => !has(found, node));
  const others = known.filter((node) => !has(silent, node));
  const left =
    isAll || isGone || silent.length > 0 ? await storedParts({ stats, query }, others) : [];
  const stored = left.filter((part) => isAll || (isGone ? isNamed(part) : has(silent, part)));
  // Refuses the name.
  if (isGone && stored.length === 0) await read();
  const idOf = new Map(silent.map(({ id, name }) => [name, id]));
  const explained = missing.map(({ name, why }) => {
    const part = stored.find(({ id }) => id === idOf.get(name));
    const until =
      part === undefined ? "" : `; the history has its statistics until ${minuteOf(part)}`;
    return { name, why: `${why}${until}` };
  });
  const parts = [...found.map(({ value }) => value), ...stored.map(({ part }) => part)];
  return {
    partial,
    missing: explained,
    stored: stored.map((one) => ({ node: one.name, until: dateOf(one) })),
    nodes: found.map(({ node, value }) => ({ node, ...stats.present([value]) })),
    ...stats.view(query, parts),
  };
}

const NOTHING = { found: [], missing: [], partial: false } as const;

const has = (nodes: readonly { readonly id: string }[], { id }: { readonly id: string }) =>
  nodes.some((node) => node.id === id);

const minuteOf = (part: StoredPart) => `${dateOf(part).slice(0, 16).replace("T", " ")} UTC`;

const dateOf = ({ until }: StoredPart) => new Date(until).toISOString();

/** Nothing while the database does not respond: the view is that of the nodes that do. */
async function storedParts(
  { stats, query }: Asked,
  others: readonly ReadableNode[],
): Promise<readonly StoredPart[]> {
  try {
    return await stats.stored(
      query,
      others.map(({ id }) => id),
    );
  } catch (error) {
    if (error instanceof ApiError) return [];
    throw error;
  }
}

function single({ query }: Call, name: string): string | null {
  const values = query.getAll(name);
  if (values.length > 1) throw new ApiError(400, `${name}: must be given once`);
  return values[0] ?? null;
}

function rangeOf(call: Call): StatsRange {
  const text = single(call, "range") ?? "1h";
  if (Object.hasOwn(ranges, text)) return text as StatsRange;
  throw new ApiError(400, `range: must be one of ${Object.keys(ranges).join(", ")}`);
}

function topOf(call: Call): number {
  const text = single(call, "top") ?? String(DEFAULT_TOP);
  const top = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (top >= 1 && top <= MAX_TOP) return top;
  throw new ApiError(400, `top: must be a whole number from 1 to ${MAX_TOP}`);
}

function subjectOf(call: Call, { config }: Changes): StatsSubject | null {
  const given = subjects.flatMap((kind) => {
    const text = single(call, kind);
    return text === null ? [] : [{ kind, text }];
  });
  if (given.length > 1)
    throw new ApiError(400, `${given[1]?.kind}: only one of ${subjects.join(", ")} may be given`);
  const [one] = given;
  if (one === undefined) return null;
  const { kind, text } = one;
  const named: ReadonlyMap<string, { readonly id: string; readonly name?: string | null }> =
    kind === "route" ? config.routes : kind === "service" ? config.services : config.targets;
  const found = [...named.values()].find(({ id, name }) => id === text || name === text);
  // Deleted objects still have a history.
  return { kind, id: found?.id ?? text };
}

const description = {
  summary: "Get traffic statistics, present and past",
  description:
    "`now` is the last minute, `history` covers `range`: the last hour by minutes, the last day by five minutes, the" +
    " last 30 days by hours. Percentiles cover all requests of the range, with an error of at most 6.2 %. Of routes, services and targets" +
    " it lists those with the most requests, the rest is `_other`; `_none` are requests that no route matched." +
    " With `node`, the history of nodes that are away or gone is that in the database of the fleet.",
  tags: ["Statistics"],
  parameters: [
    queryParameter("range", "`1h` (default), `24h` or `30d`"),
    queryParameter(
      "top",
      `Number of routes, services and targets; 1 to ${MAX_TOP}, default ${DEFAULT_TOP}`,
    ),
    queryParameter("route", "Only this route: ID or name"),
    queryParameter("service", "Only this service: ID or name"),
    queryParameter("target", "Only this target: ID"),
    nodeParameter,
  ],
  responses: {
    "200": {
      description: "The statistics",
      content: eitherContent({ $ref: "#/components/schemas/Stats" }, "NodesStats"),
    },
    ...errorResponses([400, 401, 403, 404, 500, 503]),
  },
};
