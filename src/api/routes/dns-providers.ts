// Endpoints of the types and tests of DNS providers; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { bodyOf, listResponses, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

const at = descriptionOf("dns_providers");

export function dnsProviderEndpoints({ dnsProviders }: ControlPlane): Endpoint[] {
  return [typesEndpoint(dnsProviders), testEndpoint(dnsProviders)];
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
      summary: "Test a DNS provider",
      description:
        "Writes a TXT record to the zone, queries it and deletes it; without a zone, lists the zones. Returns 200 with the result. Providers that run a program require an admin.",
      tags: [at.tag],
      parameters: [idParameter("dns_providers")],
      requestBody: { ...bodyOf("DnsProviderTest"), required: false },
      responses: plainResponses(
        "CheckReport",
        "Result of the test",
        [400, 403, 404, 413, 415, 500],
      ),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      return { body: await dnsProviders.test(idOf(call), call.body, call.principal) };
    },
  };
}
