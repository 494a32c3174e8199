// The endpoint that purges cached responses; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
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
        summary: "Purge responses from the cache",
        description:
          "Returns when no worker serves a purged response any more. Responses to requests that went to a service before the " +
          "purge are not stored either. A soft purge (`soft`) makes responses stale instead of removing them. In a fleet all nodes purge, and `Sluice-Nodes` says how many have; while one of them runs " +
          "an older version only this node purges, and `X-Warning` says so.",
        tags: ["Plugins"],
        requestBody: { ...bodyOf("CachePurge"), required: false },
        responses: plainResponses(
          "CachePurged",
          "The responses are purged",
          [400, 403, 413, 415, 500, 503],
        ),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        const { purged, warning } = await cachePurge.purge(call.body, call.principal);
        return {
          body: { purged },
          headers: warning === undefined ? {} : { "x-warning": warning },
        };
      },
    },
  ];
}
