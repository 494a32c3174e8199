// Endpoints of consumers and of their credentials; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
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
  filters: [queryParameter("limit", "Only so many, the oldest ones of those that fit")],
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
  const consumer = pathParameter("Id or username of the consumer");
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
        description: "A secret that is made by the gateway is in this answer only.",
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
      summary: "Make a new secret for a credential",
      description:
        "The new secret is in this answer only. The present one is accepted for `overlap_seconds` more; without a body it is " +
        "worth nothing at once. A credential with a key pair has no secret: write a new `public_key` instead.",
      tags: [credentialsAt.tag],
      parameters: [pathParameter("Id of the credential"), dryRunParameter, ifMatchParameter],
      requestBody: { ...bodyOf("Rotation"), required: false },
      responses: writeResponses("Credential"),
    },
    answer: async (call) => {
      const options = writeOptionsOf(call);
      return replyWritten(await credentials.rotate(idOf(call), call.body, options), options);
    },
  };
}
