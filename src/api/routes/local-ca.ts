// Endpoints of the local CA: its public root, and a new one; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { errorResponses, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf } from "./resource-endpoints.ts";

const { tag } = descriptionOf("certificates");
const path = "/api/v1/local-ca";

export function localCaEndpoints({ acme }: ControlPlane): Endpoint[] {
  const { localCa } = acme;
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "Get the root of the local CA",
        description: "The public certificate that devices trust, and what it states.",
        tags: [tag],
        responses: plainResponses("LocalCa", "The root", [403, 500]),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: localCa.view() };
      },
    },
    download("pem", "application/x-pem-file", () => localCa.certificate().toString()),
    download("crt", "application/x-x509-ca-cert", () => Buffer.from(localCa.certificate().raw)),
    {
      method: "POST",
      path: `${path}/rotate`,
      takesBody: false,
      description: {
        summary: "Replace the root of the local CA",
        description:
          "Creates a root that states what `settings.local_ca` permits now, and renews all certificates of the former one. Every device has to trust the new root.",
        tags: [tag],
        responses: plainResponses("LocalCa", "The new root", [403, 500]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await localCa.rotate(call.principal) };
      },
    },
  ];
}

/** Devices and `sluice trust` fetch it without a login: it is public, and holds no name that the gateway serves. */
function download(
  end: "pem" | "crt",
  type: string,
  read: () => string | Buffer<ArrayBuffer>,
): Endpoint {
  return {
    method: "GET",
    path: `${path}/root.${end}`,
    takesBody: false,
    description: {
      summary: `Download the root of the local CA as ${end === "pem" ? "PEM" : "DER"}`,
      description: "Needs no authentication: it is what devices install.",
      tags: [tag],
      responses: {
        "200": {
          description: end === "pem" ? "PEM" : "DER",
          content: { [type]: { schema: { type: "string" } } },
        },
        ...errorResponses([400, 404, 500]),
      },
    },
    answer: (call) => {
      requireKnownQuery(call, []);
      return new Response(read(), {
        headers: {
          "content-type": type,
          "content-disposition": `attachment; filename="sluice-local-ca.${end}"`,
        },
      });
    },
  };
}
