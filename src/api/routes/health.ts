// Endpoints of the health of services and targets; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import type { ServiceHealth } from "../../control/health/health.ts";
import { bodyOf, errorResponses, pathParameter, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { NODE_PARAMETER } from "../node-reader.ts";
import { askedNodes, eitherContent, nodeParameter, readNodes } from "../node-view.ts";
import { replyRead, requireKnownQuery } from "../write-options.ts";
import { idOf } from "./resource-endpoints.ts";

export function healthEndpoints({ health, targets, ...source }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/api/v1/services/:id/health",
      takesBody: false,
      description: {
        summary: "Get the health of a service and its targets",
        description:
          "As this gateway sees it: each node of a fleet has its own checks and its own traffic.",
        tags: ["Services"],
        parameters: [pathParameter("ID or name of the service"), nodeParameter],
        responses: {
          "200": {
            description: "Present health",
            content: eitherContent({ $ref: "#/components/schemas/ServiceHealth" }, "NodesHealth"),
          },
          ...errorResponses([400, 403, 404, 500, 503]),
        },
      },
      answer: async (call) => {
        requireKnownQuery(call, [NODE_PARAMETER]);
        const own = health.ofService(idOf(call));
        const nodes = askedNodes(call, source);
        if (nodes === null) return { body: own };
        // By its id: another node may not have the last change of its name.
        const path = `/api/v1/services/${own.service.id}/health`;
        const reading = { path, own: () => own, decode: decodeHealth };
        const { found, ...completeness } = await readNodes(nodes, call, reading);
        const items = found.map(({ node, value }) => ({ ...value, node }));
        return { body: { ...completeness, items } };
      },
    },
    {
      method: "PUT",
      path: "/api/v1/targets/:id/health",
      takesBody: true,
      description: {
        summary: "Override the health of a target",
        description:
          "Applies at once on every worker and overrides checks and traffic until `ttl` seconds have passed, `auto` is " +
          "sent, or the gateway stops; in a fleet on every node, also after restarts. It ends when the target or its service " +
          "is disabled. It is no part of the configuration, revisions, exports or ETags.",
        tags: ["Targets"],
        parameters: [pathParameter("ID of the target")],
        requestBody: bodyOf("TargetHealthInput"),
        responses: {
          ...plainResponses("Target", "Every worker applies it"),
          ...errorResponses([400, 404, 409, 413, 415, 503]),
        },
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        const { target, warning } = await health.order(idOf(call), call.body, call.principal);
        const reply = replyRead(targets.get(target.id));
        if (warning === null) return reply;
        return { ...reply, headers: { ...reply.headers, "x-warning": warning } };
      },
    },
  ];
}

/** The response of another node. */
function decodeHealth(response: unknown): ServiceHealth {
  const { state, targets } = response as ServiceHealth;
  if (typeof state !== "string" || !targets.every(({ id }) => typeof id === "string"))
    throw new TypeError("not the health of a service");
  return response as ServiceHealth;
}
