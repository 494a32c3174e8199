// Endpoints of secrets; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
import { readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/secrets",
  word: "secret",
  tag: "Secrets",
  schema: "Secret",
  inputSchema: "SecretInput",
  isNamed: true,
};

export function secretEndpoints({ secrets }: ControlPlane): Endpoint[] {
  return [...readEndpoints(at, secrets), ...writeEndpoints(at, secrets)];
}
