// Endpoints of the credentials of one consumer; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  dryRunParameter,
  filterParameters,
  ifMatchParameter,
  queryParameter,
  readResponses,
  writeResponses,
} from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { filtersOf, replyRead, replyWritten, writeOptionsOf } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

const at = descriptionOf("credentials");

export const credentialEndpoints = ({ credentials }: ControlPlane): Endpoint[] => [
  ...credentialsOfConsumer(credentials),
  rotateEndpoint(credentials),
];

function credentialsOfConsumer(credentials: ControlPlane["credentials"]): Endpoint[] {
  const path = `${descriptionOf("consumers").path}/:id/credentials`;
  const tags = [at.tag];
  const consumer = idParameter("consumers");
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "List the credentials of a consumer",
        tags,
        parameters: [
          consumer,
          ...filterParameters,
          queryParameter("type", "Only credentials of this type"),
        ],
        responses: readResponses("Credential", { list: true }),
      },
      answer: (call) => replyRead(credentials.listIn(idOf(call), filtersOf(call))),
    },
    {
      method: "POST",
      path,
      takesBody: true,
      description: {
        summary: "Create a credential of a consumer",
        description: "Only this response shows a secret that the gateway generates.",
        tags,
        parameters: [consumer, dryRunParameter],
        requestBody: bodyOf("ConsumerCredentialInput"),
        responses: writeResponses("Credential"),
      },
      answer: async (call) => {
        const options = writeOptionsOf(call);
        return replyWritten(await credentials.createIn(idOf(call), call.body, options), options);
      },
    },
  ];
}

function rotateEndpoint(credentials: ControlPlane["credentials"]): Endpoint {
  return {
    method: "POST",
    path: `${at.path}/:id/rotate`,
    takesBody: "optional",
    description: {
      summary: "Rotate the secret of a credential",
      description:
        "Only this response shows the new secret. The present one stays valid for `overlap_seconds`; without a body it becomes " +
        "invalid at once. A credential with a key pair has no secret: write a new `public_key` instead.",
      tags: [at.tag],
      parameters: [idParameter("credentials"), dryRunParameter, ifMatchParameter],
      requestBody: { ...bodyOf("Rotation"), required: false },
      responses: writeResponses("Credential"),
    },
    answer: async (call) => {
      const options = writeOptionsOf(call);
      return replyWritten(await credentials.rotate(idOf(call), call.body, options), options);
    },
  };
}
