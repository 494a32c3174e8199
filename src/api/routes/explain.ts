// Endpoint that explains the routing of a request; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { bodyOf, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";

export function explainEndpoints({ explain }: ControlPlane): Endpoint[] {
  return [
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
          [400, 403, 500, 503],
        ),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await explain.explain(call.body) };
      },
    },
  ];
}
