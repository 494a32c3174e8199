// Endpoints of DNS providers, of the types that there are, and of the trial of one; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import { bodyOf, listResponses, pathParameter, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/dns-providers",
  word: "DNS provider",
  tag: "DNS providers",
  schema: "DnsProvider",
  inputSchema: "DnsProviderInput",
  isNamed: true,
};

export function dnsProviderEndpoints({ dnsProviders }: ControlPlane): Endpoint[] {
  return [
    typesEndpoint(dnsProviders),
    ...readEndpoints(at, dnsProviders),
    ...writeEndpoints(at, dnsProviders),
    testEndpoint(dnsProviders),
  ];
}

type DnsProviders = ControlPlane["dnsProviders"];

function typesEndpoint(dnsProviders: DnsProviders): Endpoint {
  return {
    method: "GET",
    path: `${at.path}/types`,
    takesBody: false,
    description: {
      summary: "List the types of DNS providers",
      description: "Each with the schema and an example of its `config`.",
      tags: [at.tag],
      responses: listResponses("DnsProviderType", [400, 403, 500]),
    },
    answer: (call) => {
      requireKnownQuery(call, []);
      return { body: dnsProviders.types() };
    },
  };
}

function testEndpoint(dnsProviders: DnsProviders): Endpoint {
  return {
    method: "POST",
    path: `${at.path}/:id/test`,
    takesBody: "optional",
    description: {
      summary: "Try a DNS provider out",
      description:
        "Writes a TXT record in the zone, looks for it and takes it away again; without a zone the zones are listed. Answers 200 whatever is found. One that runs a program needs an admin.",
      tags: [at.tag],
      parameters: [pathParameter("Id or name of the DNS provider")],
      requestBody: { ...bodyOf("DnsProviderTest"), required: false },
      responses: plainResponses("CheckReport", "What was found", [400, 403, 404, 413, 415, 500]),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      return { body: await dnsProviders.test(idOf(call), call.body, call.principal) };
    },
  };
}
