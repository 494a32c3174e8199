// Endpoints of listeners; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
import { readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/listeners",
  word: "listener",
  tag: "Listeners",
  schema: "Listener",
  inputSchema: "ListenerInput",
  isNamed: true,
};

export function listenerEndpoints({ listeners }: ControlPlane): Endpoint[] {
  return [...readEndpoints(at, listeners), ...writeEndpoints(at, listeners)];
}
