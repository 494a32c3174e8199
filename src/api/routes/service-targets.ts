// Endpoints of the targets of one service; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  dryRunParameter,
  filterParameters,
  readResponses,
  writeResponses,
} from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { filtersOf, replyRead, replyWritten, writeOptionsOf } from "../write-options.ts";
import { idOf, idParameter } from "./resource-endpoints.ts";

export function serviceTargetEndpoints({ targets }: ControlPlane): Endpoint[] {
  const service = idParameter("services");
  return [
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
