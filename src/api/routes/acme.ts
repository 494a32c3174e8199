// Endpoints of accounts at certificate authorities; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
import { pathParameter, plainResponses } from "../description.ts";
import { requireKnownQuery } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/acme/accounts",
  word: "ACME account",
  tag: "ACME accounts",
  schema: "AcmeAccount",
  inputSchema: "AcmeAccountInput",
  isNamed: true,
};

export function acmeEndpoints({ acmeAccounts, acme }: ControlPlane): Endpoint[] {
  return [
    ...readEndpoints(at, acmeAccounts),
    ...writeEndpoints(at, acmeAccounts),
    {
      method: "POST",
      path: `${at.path}/:id/rotate-key`,
      takesBody: false,
      description: {
        summary: "Change the key of an ACME account",
        description:
          "The authority knows the account by a new key when this answers, and by the present one no more. Its certificates stay as they are. 409 while something is ordered with it.",
        tags: [at.tag],
        parameters: [pathParameter("Id or name of the ACME account")],
        responses: plainResponses(at.schema, "The account", [400, 403, 404, 409, 500]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        const { id } = acmeAccounts.get(idOf(call)).view;
        await acme.rotateKey(id, call.principal);
        return { body: acmeAccounts.get(id).view };
      },
    },
  ];
}
