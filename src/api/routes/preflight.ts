// The endpoint that looks at names before a certificate is ordered for them; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import { bodyOf, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";

export function preflightEndpoints({ preflight }: ControlPlane): Endpoint[] {
  return [
    {
      method: "POST",
      path: "/api/v1/certificates/preflight",
      takesBody: true,
      description: {
        summary: "Check whether a certificate could be issued",
        description:
          "For each name: whether it leads here, whether port 80 reaches this gateway, whether CAA records allow the authorities of the accounts, whether the DNS zone can be written. Answers 200 whatever is found; nothing is ordered.",
        tags: ["Certificates"],
        requestBody: bodyOf("PreflightInput"),
        responses: plainResponses("PreflightReport", "What was found", [400, 403, 413, 415, 500]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await preflight.check(call.body, call.principal) };
      },
    },
  ];
}
