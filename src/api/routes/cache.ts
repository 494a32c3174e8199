// The endpoint that forgets stored answers; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import { bodyOf, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";

export function cacheEndpoints({ cachePurge }: ControlPlane): Endpoint[] {
  return [
    {
      method: "POST",
      path: "/api/v1/cache/purge",
      takesBody: "optional",
      description: {
        summary: "Forget answers that response-cache has stored",
        description:
          "Answers when no worker gives any of them any more. Answers that are on their way from a service at that moment are " +
          "not stored either.",
        tags: ["Plugins"],
        requestBody: { ...bodyOf("CachePurge"), required: false },
        responses: plainResponses("CachePurged", "They are gone", [400, 403, 413, 415, 500]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await cachePurge.purge(call.body, call.principal) };
      },
    },
  ];
}
