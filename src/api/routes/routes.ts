// Endpoints of routes; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { bodyOf, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/routes",
  word: "route",
  tag: "Routes",
  schema: "Route",
  inputSchema: "RouteInput",
  parents: ["service_id", "listener_id"],
  isNamed: true,
};

export function routeEndpoints({ routes, explain }: ControlPlane): Endpoint[] {
  return [
    ...readEndpoints(at, routes),
    ...writeEndpoints(at, routes),
    {
      method: "POST",
      path: "/api/v1/routes/explain",
      takesBody: true,
      description: {
        summary: "Explain which route matches a request",
        description:
          "Sends no request and changes nothing: a worker routes it like a real one. `candidates` are the " +
          "closest routes, at most 100, in matching order.",
        tags: ["Routes"],
        requestBody: bodyOf("ExplainedRequest"),
        responses: plainResponses(
          "Explanation",
          "What the gateway would do with the request",
          [400, 403, 500],
        ),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await explain.explain(call.body) };
      },
    },
  ];
}
