// Endpoints of ACME accounts; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
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
        summary: "Roll over the key of an ACME account",
        description:
          "Replaces the account key at the CA (RFC 8555 section 7.3.5) before it responds. Certificates stay valid. 409 while an order with the account is in progress.",
        tags: [at.tag],
        parameters: [pathParameter("ID or name of the ACME account")],
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
