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
        summary: "Health of a service and its targets",
        tags: ["Services"],
        parameters: [pathParameter("Id or name of the service")],
        responses: {
          ...plainResponses("ServiceHealth", "What is known at this moment"),
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
        summary: "Say whether a target is healthy",
        description:
          "It holds at once on every worker, whatever checks and traffic say, until `ttl` seconds have passed, `auto` is " +
          "sent, or the gateway ends. It is no part of the configuration: no revision, no export, no ETag knows of it.",
        tags: ["Targets"],
        parameters: [pathParameter("Id of the target")],
        requestBody: bodyOf("TargetHealthInput"),
        responses: {
          ...plainResponses("Target", "Every worker knows it"),
          ...errorResponses([400, 404, 409, 413, 415]),
        },
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        const { id } = health.order(idOf(call), call.body, call.principal);
        return replyRead(targets.get(id));
      },
    },
  ];
}
