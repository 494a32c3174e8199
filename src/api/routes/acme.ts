// Endpoint that rolls over the key of an ACME account; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import type { Endpoint } from "../endpoint.ts";
import { plainResponses } from "../description.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

const at = descriptionOf("acme_accounts");

export function acmeEndpoints({ acmeAccounts, acme }: ControlPlane): Endpoint[] {
  return [
    {
      method: "POST",
      path: `${at.path}/:id/rotate-key`,
      takesBody: false,
      description: {
        summary: "Roll over the key of an ACME account",
        description:
          "Replaces the account key at the CA (RFC 8555 section 7.3.5) before it responds. Certificates stay valid. 409 while an order with the account is in progress.",
        tags: [at.tag],
        parameters: [idParameter("acme_accounts")],
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
