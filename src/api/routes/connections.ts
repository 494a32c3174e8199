// Endpoints of open connections, of stream routes and of routes with upgrades; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { deleteResponses, errorResponses, pathParameter, readResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

export function connectionEndpoints({ connections }: ControlPlane): Endpoint[] {
  const streamRoutes = descriptionOf("stream_routes");
  const routes = descriptionOf("routes");
  return [
    {
      method: "GET",
      path: `${streamRoutes.path}/:id/connections`,
      takesBody: false,
      description: {
        summary: "List the connections of a stream route",
        description: "Open connections on all workers, oldest first.",
        tags: [streamRoutes.tag],
        parameters: [idParameter("stream_routes")],
        responses: { ...readResponses("Connection", { list: true }), ...errorResponses([503]) },
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await connections.ofStreamRoute(idOf(call)) };
      },
    },
    {
      method: "GET",
      path: `${routes.path}/:id/connections`,
      takesBody: false,
      description: {
        summary: "List the upgraded connections of a route",
        description: "Open WebSockets and other upgrades on all workers, oldest first.",
        tags: [routes.tag],
        parameters: [idParameter("routes")],
        responses: {
          ...readResponses("UpgradedConnection", { list: true }),
          ...errorResponses([503]),
        },
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await connections.ofRoute(idOf(call)) };
      },
    },
    {
      method: "DELETE",
      path: "/api/v1/connections/:id",
      takesBody: false,
      description: {
        summary: "Close a connection",
        description:
          "Of a stream route or of a route. A WebSocket gets Close with the code 1001 at both ends.",
        tags: [streamRoutes.tag],
        parameters: [pathParameter("ID of the connection")],
        responses: deleteResponses(),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        await connections.kill(idOf(call), call.principal);
        return { body: { deleted: true } };
      },
    },
  ];
}
