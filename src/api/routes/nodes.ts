// Endpoints of the nodes of a fleet; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import type { ListedNode } from "../../control/node-plugins.ts";
import type { Nodes } from "../../control/nodes.ts";
import { roleOf } from "../../control/principal.ts";
import { pathParameter, plainResponses } from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";

const tags = ["Fleet"];
const parameters = [pathParameter("ID or name of the node")];

export function nodeEndpoints({ nodes }: ControlPlane): Endpoint[] {
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
        const all = await nodes.list();
        return { body: all.map((node) => shown(node, call)) };
      },
    },
    {
      method: "GET",
      path: "/api/v1/nodes/:id",
      takesBody: false,
      description: {
        summary: "Get a node of the fleet",
        tags,
        parameters,
        responses: plainResponses("Node", "The node", [403, 404, 500, 503]),
      },
      answer: async (call) => {
        const id = idOf(call);
        return { body: shown(await nodes.get(id), call) };
      },
    },
    {
      method: "DELETE",
      path: "/api/v1/nodes/:id",
      takesBody: false,
      description: {
        summary: "Forget a node of the fleet",
        description:
          "For a node that has ended without leaving the fleet: the others do not count it any more. It is a node again when it comes back. A node with a heartbeat is a 409.",
        tags,
        parameters,
        responses: plainResponses("Node", "The forgotten node", [400, 403, 404, 409, 500, 503]),
      },
      answer: async (call) => {
        const id = idOf(call);
        return { body: await nodes.forget(id, call.principal) };
      },
    },
    ...drainEndpoints(nodes),
  ];
}

function drainEndpoints(nodes: Nodes): Endpoint[] {
  const responses = plainResponses("Node", "The node", [400, 403, 404, 409, 500, 503]);
  const path = "/api/v1/nodes/:id/drain";
  const drain = (drained: boolean) => async (call: Call) => {
    const id = idOf(call);
    return { body: await nodes.drain(id, drained, call.principal) };
  };
  return [
    {
      method: "POST",
      path,
      takesBody: false,
      description: {
        summary: "Drain a node of the fleet",
        description:
          "Its `/readyz` returns 503 from now on, also after a restart, so that a load balancer takes it out. It serves the requests that still come, and follows all changes. A node that is away drains as soon as it is back.",
        tags,
        parameters,
        responses,
      },
      answer: drain(true),
    },
    {
      method: "DELETE",
      path,
      takesBody: false,
      description: {
        summary: "End the draining of a node of the fleet",
        tags,
        parameters,
        responses,
      },
      answer: drain(false),
    },
  ];
}

/** The reason may name files, ports and programs of the machine: that is for admins. */
const shown = (node: ListedNode, { principal }: Call): ListedNode =>
  roleOf(principal) === "admin" ? node : { ...node, error: "" };

function idOf(call: Call): string {
  requireKnownQuery(call, []);
  return call.params["id"] ?? "";
}
