// Endpoints of consumers and of their credentials; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  dryRunParameter,
  filterParameters,
  ifMatchParameter,
  pathParameter,
  queryParameter,
  readResponses,
  writeResponses,
} from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { filtersOf, replyRead, replyWritten, writeOptionsOf } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const consumersAt = {
  path: "/api/v1/consumers",
  word: "consumer",
  tag: "Consumers",
  schema: "Consumer",
  inputSchema: "ConsumerInput",
  filters: [queryParameter("limit", "Maximum number of consumers, the oldest first")],
  isNamed: true,
  nameWord: "username",
};

const credentialsAt = {
  path: "/api/v1/credentials",
  word: "credential",
  tag: "Credentials",
  schema: "Credential",
  inputSchema: "CredentialInput",
  parents: ["consumer_id"],
  filters: [queryParameter("type", "Only credentials of this type")],
  isNamed: false,
};

export function consumerEndpoints({ consumers, credentials }: ControlPlane): Endpoint[] {
  return [
    ...readEndpoints(consumersAt, consumers),
    ...writeEndpoints(consumersAt, consumers),
    ...readEndpoints(credentialsAt, credentials),
    ...writeEndpoints(credentialsAt, credentials),
    ...credentialsOfConsumer(credentials),
    rotateEndpoint(credentials),
  ];
}

function credentialsOfConsumer(credentials: ControlPlane["credentials"]): Endpoint[] {
  const path = `${consumersAt.path}/:id/credentials`;
  const tags = [credentialsAt.tag];
  const consumer = pathParameter("ID or username of the consumer");
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "List the credentials of a consumer",
        tags,
        parameters: [consumer, ...filterParameters, ...credentialsAt.filters],
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
    path: `${credentialsAt.path}/:id/rotate`,
    takesBody: "optional",
    description: {
      summary: "Rotate the secret of a credential",
      description:
        "Only this response shows the new secret. The present one stays valid for `overlap_seconds`; without a body it becomes " +
        "invalid at once. A credential with a key pair has no secret: write a new `public_key` instead.",
      tags: [credentialsAt.tag],
      parameters: [pathParameter("ID of the credential"), dryRunParameter, ifMatchParameter],
      requestBody: { ...bodyOf("Rotation"), required: false },
      responses: writeResponses("Credential"),
    },
    answer: async (call) => {
      const options = writeOptionsOf(call);
      return replyWritten(await credentials.rotate(idOf(call), call.body, options), options);
    },
  };
}
