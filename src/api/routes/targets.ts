// Endpoints of targets; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
import { readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/targets",
  word: "target",
  tag: "Targets",
  schema: "Target",
  inputSchema: "TargetInput",
  parents: ["service_id"],
  isNamed: false,
};

export function targetEndpoints({ targets }: ControlPlane): Endpoint[] {
  return [...readEndpoints(at, targets), ...writeEndpoints(at, targets)];
}
