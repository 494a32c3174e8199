// Endpoints of the health of services and targets; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import { bodyOf, errorResponses, pathParameter, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { replyRead, requireKnownQuery } from "../write-options.ts";
import { idOf } from "./resource-endpoints.ts";

export function healthEndpoints({ health, targets }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/api/v1/services/:id/health",
      takesBody: false,
      description: {
        summary: "Get the health of a service and its targets",
        tags: ["Services"],
        parameters: [pathParameter("ID or name of the service")],
        responses: {
          ...plainResponses("ServiceHealth", "Present health"),
          ...errorResponses([404]),
        },
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: health.ofService(idOf(call)) };
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
          ...errorResponses([400, 404, 409, 413, 415]),
        },
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        const { id } = await health.order(idOf(call), call.body, call.principal);
        return replyRead(targets.get(id));
      },
    },
  ];
}
