// Endpoints of listeners, which can be read; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
import { readEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/listeners",
  word: "listener",
  tag: "Listeners",
  schema: "Listener",
  inputSchema: "Listener",
  isNamed: true,
};

export function listenerEndpoints({ listeners }: ControlPlane): Endpoint[] {
  return readEndpoints(at, listeners);
}
