// What a request asks of the other nodes of the fleet for its changes, and the headers that name those that serve them.
import type { FleetView, FleetWrite } from "../control/fleet-view.ts";
import { type NodeRequirement, shortageOf } from "../control/node-requirement.ts";
import { ApiError, invalid } from "../model/error.ts";
import { shortList } from "../model/short-list.ts";

const WAIT = "wait";
const REQUIRE_HEADER = "Sluice-Require-Nodes";

const MAX_WAIT_MS = 30_000;
/** The number of nodes that a fleet may have at most. */
const MAX_NODES = 50;

/** Milliseconds of `wait`, which is removed from the query; undefined: it is absent. */
export function takeWait(query: URLSearchParams): number | undefined {
  const text = query.get(WAIT);
  if (text === null) return undefined;
  query.delete(WAIT);
  const [, digits = "", unit = "s"] = /^(\d{1,5}(?:\.\d{1,3})?)(ms|s)?$/.exec(text) ?? [];
  const ms = Number(digits) * (unit === "s" ? 1000 : 1);
  if (digits !== "" && ms <= MAX_WAIT_MS) return ms;
  throw invalid(WAIT, "must be a time from 0 to 30 seconds, such as 5, 0.5 or 500ms");
}

/** Null: no requirement. */
export function requirementOf(headers: Headers): NodeRequirement | null {
  const text = headers.get(REQUIRE_HEADER)?.trim().toLowerCase();
  if (text === undefined) return null;
  if (text === "all" || text === "majority") return text;
  const count = Number(text);
  if (/^\d{1,3}$/.test(text) && count >= 1 && count <= MAX_NODES) return count;
  throw invalid(REQUIRE_HEADER, `must be all, majority, or a number from 1 to ${MAX_NODES}`);
}

/** A gateway without a fleet is one node. */
const ALONE = [{ name: "this gateway", state: "serving" }] as const;

/** Rejects with a 409 while fewer nodes are present. The commit checks it again. */
export async function requireNodes(
  requirement: NodeRequirement,
  fleet: FleetView | null,
): Promise<void> {
  if (fleet !== null) return await fleet.requirePresent(requirement);
  const shortage = shortageOf(requirement, ALONE);
  if (shortage !== null) throw new ApiError(409, `${shortage}; nothing was changed`);
}

/** On how many nodes of the fleet the last change of a request is live; nothing when it made none. */
export async function nodesHeaders(
  fleet: FleetView,
  { committed, waitMs }: FleetWrite,
): Promise<Readonly<Record<string, string>>> {
  if (committed === null) return {};
  // The change is made; without the database only the others are unknown.
  const reach = await fleet.reach(committed, waitMs).catch(() => null);
  if (reach === null) return { "sluice-nodes": "1/?" };
  const missing = shortList(reach.missing.map(({ name, state }) => `${name};${state}`));
  return {
    "sluice-nodes": `${reach.live}/${reach.nodes}`,
    ...(missing === "" ? {} : { "sluice-nodes-missing": missing }),
  };
}

/** Parameters of every operation that changes something. */
export const fleetParameters = [
  {
    name: WAIT,
    in: "query",
    required: false,
    description:
      "How long the reply waits until the other nodes of a fleet serve the change: 0 to 30 seconds, such as `5`, `0.5` or `500ms`; default 2",
    schema: { type: "string" },
  },
  {
    name: REQUIRE_HEADER,
    in: "header",
    required: false,
    description:
      "`all`, `majority` or a number: change nothing (409) while fewer nodes of the fleet are present. A node that is away, cut off or refuses changes is not",
    schema: { type: "string" },
  },
];

/** Headers of the reply to every change. */
export const fleetHeaders = {
  "Sluice-Nodes": {
    description: "`3/3`: number of nodes that serve the change, and of all nodes; only in a fleet",
    schema: { type: "string" },
  },
  "Sluice-Nodes-Missing": {
    description:
      "`n2;lagging, n3;away`: the nodes that do not serve it, with their states: the first ten, and how many more",
    schema: { type: "string" },
  },
};
