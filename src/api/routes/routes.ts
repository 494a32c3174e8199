// Endpoints of routes; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
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

export function routeEndpoints({ routes }: ControlPlane): Endpoint[] {
  return [...readEndpoints(at, routes), ...writeEndpoints(at, routes)];
}
