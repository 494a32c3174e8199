// Endpoints of services and of the targets inside one; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  dryRunParameter,
  filterParameters,
  pathParameter,
  readResponses,
  writeResponses,
} from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { filtersOf, replyRead, replyWritten, writeOptionsOf } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/services",
  word: "service",
  tag: "Services",
  schema: "Service",
  inputSchema: "ServiceInput",
  isNamed: true,
  replaceNote:
    "So does `targets`: without it, the gateway removes all targets, and `X-Warning` says how many.",
};

export function serviceEndpoints({ services, targets }: ControlPlane): Endpoint[] {
  const service = pathParameter("ID or name of the service");
  return [
    ...readEndpoints(at, services),
    ...writeEndpoints(at, services),
    {
      method: "GET",
      path: "/api/v1/services/:id/targets",
      takesBody: false,
      description: {
        summary: "List the targets of a service",
        tags: ["Targets"],
        parameters: [service, ...filterParameters],
        responses: readResponses("Target", { list: true }),
      },
      answer: (call) => replyRead(targets.listIn(idOf(call), filtersOf(call))),
    },
    {
      method: "POST",
      path: "/api/v1/services/:id/targets",
      takesBody: true,
      description: {
        summary: "Create a target of a service",
        tags: ["Targets"],
        parameters: [service, dryRunParameter],
        requestBody: bodyOf("ServiceTargetInput"),
        responses: writeResponses("Target"),
      },
      answer: async (call) => {
        const options = writeOptionsOf(call);
        return replyWritten(await targets.createIn(idOf(call), call.body, options), options);
      },
    },
  ];
}
