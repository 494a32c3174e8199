// Endpoints of accounts at certificate authorities; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
import { readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/acme/accounts",
  word: "ACME account",
  tag: "ACME accounts",
  schema: "AcmeAccount",
  inputSchema: "AcmeAccountInput",
  isNamed: true,
};

export function acmeEndpoints({ acmeAccounts }: ControlPlane): Endpoint[] {
  return [...readEndpoints(at, acmeAccounts), ...writeEndpoints(at, acmeAccounts)];
}
