// Endpoints of certificates; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import { errorResponses, pathParameter } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/certificates",
  word: "certificate",
  tag: "Certificates",
  schema: "Certificate",
  inputSchema: "CertificateInput",
  isNamed: true,
};

export function certificateEndpoints({ certificates }: ControlPlane): Endpoint[] {
  return [
    ...readEndpoints(at, certificates),
    ...writeEndpoints(at, certificates),
    {
      method: "GET",
      path: `${at.path}/:id/pem`,
      takesBody: false,
      description: {
        summary: "Download the chain of a certificate",
        description: "The certificate and those that lead to its issuer, as PEM, without the key.",
        tags: [at.tag],
        parameters: [pathParameter("Id or name of the certificate")],
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
