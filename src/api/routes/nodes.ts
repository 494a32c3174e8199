// Endpoints of the nodes of a fleet; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import type { FleetView } from "../../control/fleet-view.ts";
import { ApiError } from "../../model/error.ts";
import { pathParameter, plainResponses } from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";

const tags = ["Fleet"];

export function nodeEndpoints({ fleet }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/api/v1/nodes",
      takesBody: false,
      description: {
        summary: "List the nodes of the fleet",
        description: "A gateway without a fleet has no nodes.",
        tags,
        responses: plainResponses("Nodes", "The nodes, by name", [403, 500, 503]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: fleet === null ? [] : await nodesOf(fleet) };
      },
    },
    {
      method: "GET",
      path: "/api/v1/nodes/:id",
      takesBody: false,
      description: {
        summary: "Get a node of the fleet",
        tags,
        parameters: [pathParameter("ID or name of the node")],
        responses: plainResponses("Node", "The node", [403, 404, 500, 503]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await nodeOf(fleet, call) };
      },
    },
  ];
}

async function nodesOf(fleet: FleetView) {
  fleet.requireConnected();
  return await fleet.nodes();
}

/** By id or name. */
async function nodeOf(fleet: FleetView | null, { params }: Call) {
  const key = params["id"] ?? "";
  const nodes = fleet === null ? [] : await nodesOf(fleet);
  const node = nodes.find(({ id, name }) => id === key || name === key);
  if (node === undefined) throw new ApiError(404, `node "${key}" does not exist`);
  return node;
}
