// Endpoint of what is found in containers and files; decodes nothing.
import type { ControlPlane } from "../../control-plane.ts";
import { plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";

export function discoveryEndpoints({ discovery }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/api/v1/discovery",
      takesBody: false,
      description: {
        summary: "List what this gateway finds in containers and files",
        description:
          "Each source with its sites, the objects that they became, and a sentence about each that is not served. In a fleet, only this node's.",
        tags: ["Discovery"],
        responses: plainResponses("Discovery", "The sources"),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: discovery.list() };
      },
    },
  ];
}
