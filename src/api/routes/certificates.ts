// Endpoints that renew, revoke and download certificates; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { bodyOf, errorResponses, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

const wordsOf = {
  renew: {
    summary: "Renew a certificate",
    description:
      "Requests a new certificate from the CA now; the present one stays in use until then. Returns at once: `status` and `last_error` show the progress.",
  },
  revoke: {
    summary: "Revoke a certificate",
    description:
      "Revokes the certificate at its CA and takes it out of service; the gateway requests a new one at once, unless it is disabled.",
  },
} as const;

const at = descriptionOf("certificates");

export function certificateEndpoints({ certificates, acme }: ControlPlane): Endpoint[] {
  return [
    {
      ...actionOf("renew", false),
      answer: (call) => {
        requireKnownQuery(call, []);
        const certificate = certificates.find(idOf(call));
        acme.renew(certificate, call.principal);
        return { body: certificates.get(certificate.id).view };
      },
    },
    {
      ...actionOf("revoke", "optional"),
      answer: async (call) => {
        requireKnownQuery(call, []);
        const certificate = certificates.find(idOf(call));
        await acme.revoke(certificate, call.body, call.principal);
        return { body: certificates.get(certificate.id).view };
      },
    },
    {
      method: "GET",
      path: `${at.path}/:id/pem`,
      takesBody: false,
      description: {
        summary: "Download the chain of a certificate",
        description: "The certificate and its intermediates as PEM, without the key.",
        tags: [at.tag],
        parameters: [idParameter("certificates")],
        responses: {
          "200": {
            description: "PEM",
            content: { "application/x-pem-file": { schema: { type: "string" } } },
          },
          ...errorResponses([400, 404, 500]),
        },
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return new Response(certificates.chainOf(idOf(call)), {
          headers: { "content-type": "application/x-pem-file" },
        });
      },
    },
  ];
}

function actionOf(
  action: "renew" | "revoke",
  takesBody: false | "optional",
): Omit<Endpoint, "answer"> {
  return {
    method: "POST",
    path: `${at.path}/:id/${action}`,
    takesBody,
    description: {
      ...wordsOf[action],
      tags: [at.tag],
      parameters: [idParameter("certificates")],
      ...(takesBody === false ? {} : { requestBody: { ...bodyOf("Revocation"), required: false } }),
      responses: plainResponses(at.schema, "The certificate", [400, 403, 404, 409, 500]),
    },
  };
}
