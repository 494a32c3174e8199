// The endpoint that checks names before a certificate is issued; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
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
          "Checks for each name: whether it resolves to this gateway, whether port 80 reaches it, whether CAA records permit the CAs of the accounts, whether the DNS zone is writable. Returns 200 with the result; requests no certificate.",
        tags: ["Certificates"],
        requestBody: bodyOf("PreflightInput"),
        responses: plainResponses(
          "PreflightReport",
          "Result of the checks",
          [400, 403, 413, 415, 500],
        ),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await preflight.check(call.body, call.principal) };
      },
    },
  ];
}
