// Endpoints of the admin token; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf } from "./resource-endpoints.ts";

const tags = [descriptionOf("tokens").tag];

export function adminTokenEndpoints({ auth }: ControlPlane): Endpoint[] {
  const path = "/api/v1/admin/token";
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "Get the status of the admin token",
        tags,
        responses: plainResponses("AdminTokenStatus", "Status of the admin token", [403, 500]),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: auth.adminTokenStatus() };
      },
    },
    {
      method: "POST",
      path,
      takesBody: false,
      description: {
        summary: "Create or replace the admin token",
        description: "Only this response shows the token; the previous one becomes invalid.",
        tags,
        responses: plainResponses("AdminToken", "The token", [403, 500]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await auth.rotateAdminToken(call.principal) };
      },
    },
    {
      method: "DELETE",
      path,
      takesBody: false,
      description: {
        summary: "Delete the admin token",
        tags,
        responses: plainResponses("Deleted", "The token is invalid", [403, 404, 500]),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        await auth.removeAdminToken(call.principal);
        return { body: { deleted: true } };
      },
    },
  ];
}
