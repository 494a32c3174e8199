// Views of several nodes of the fleet: decodes `node`, and describes what such a response has more; knows no resource.
import type { FleetParts } from "../control/fleet-parts.ts";
import type { FleetView } from "../control/fleet-view.ts";
import { ALL_NODES, type Collected, collect } from "../control/node-reads.ts";
import type { MergedReader, MergedStream, NodeStreams } from "../control/node-streams.ts";
import { ApiError } from "../model/error.ts";
import { queryParameter } from "./description.ts";
import type { Call } from "./endpoint.ts";
import { NODE_PARAMETER } from "./node-reader.ts";

export type FleetSource = Pick<FleetParts, "fleet" | "nodeStreams">;

/** The nodes that a call asks for. */
export interface AskedNodes {
  readonly fleet: FleetView;
  readonly streams: NodeStreams;
  /** `all`, or the id or name of a node. */
  readonly asked: string;
}

/** Null without `node`: the response is that of this node alone, as without a fleet. */
export function askedNodes(
  { query }: Call,
  { fleet, nodeStreams: streams }: FleetSource,
): AskedNodes | null {
  const values = query.getAll(NODE_PARAMETER);
  const [asked] = values;
  if (asked === undefined) return null;
  if (values.length > 1) throw new ApiError(400, `${NODE_PARAMETER}: must be given once`);
  if (fleet === null || streams === null)
    throw new ApiError(400, `${NODE_PARAMETER}: this gateway is part of no fleet; omit it`);
  return { fleet, streams, asked };
}

interface Reading<T> {
  /** Of the endpoint. */
  readonly path: string;
  readonly own: () => T | Promise<T>;
  /** Throws for what is no response of the endpoint. */
  readonly decode: (response: unknown) => T;
}

/** Reads the same as `call` from all nodes that it asks for. */
export async function readNodes<T>(
  { fleet, asked }: AskedNodes,
  call: Call,
  { path, ...reading }: Reading<T>,
): Promise<Collected<T>> {
  const { role } = call.principal;
  return await collect(fleet, asked, { ...reading, role, path: pathFor(path, call) });
}

/** For `EventStreams`: the events of all nodes that a call asks for. */
export function followNodes(
  { streams, asked }: AskedNodes,
  { principal: { role } }: Call,
  stream: Omit<MergedStream, "asked" | "role">,
): (wake: () => void) => MergedReader {
  return (wake) => streams.subscribe({ ...stream, asked, role }, wake);
}

/** What another node is sent: the query of the call without what only this node reads. */
export function pathFor(path: string, { query }: Pick<Call, "query">): string {
  const rest = new URLSearchParams(query);
  rest.delete(NODE_PARAMETER);
  return rest.size === 0 ? path : `${path}?${rest}`;
}

export const nodeParameter = queryParameter(
  NODE_PARAMETER,
  `In a fleet: \`${ALL_NODES}\`, or the name or ID of a node. The response then has \`partial\`, and \`missing\` with the nodes that did not respond within a second`,
);

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

/** The response without `node`, and with it. */
export const eitherContent = (alone: unknown, ofNodes: string) => ({
  "application/json": { schema: { anyOf: [alone, ref(ofNodes)] } },
});
