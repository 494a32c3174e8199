// Endpoints of the connections of stream routes; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { deleteResponses, pathParameter, readResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

const at = descriptionOf("stream_routes");

export function connectionEndpoints({ streamConnections }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path: `${at.path}/:id/connections`,
      takesBody: false,
      description: {
        summary: "List the connections of a stream route",
        description: "Open connections on all workers, oldest first.",
        tags: [at.tag],
        parameters: [idParameter("stream_routes")],
        responses: readResponses("Connection", { list: true }),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await streamConnections.list(idOf(call)) };
      },
    },
    {
      method: "DELETE",
      path: "/api/v1/connections/:id",
      takesBody: false,
      description: {
        summary: "Close a connection",
        tags: [at.tag],
        parameters: [pathParameter("ID of the connection")],
        responses: deleteResponses(),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        await streamConnections.kill(idOf(call), call.principal);
        return { body: { deleted: true } };
      },
    },
  ];
}
