// Endpoints of the types, tests and notifications of alerts; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { listResponses, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf, idOf, idParameter } from "./resource-endpoints.ts";

const at = descriptionOf("alerts");
type Alerts = ControlPlane["alerts"];

export function alertEndpoints({ alerts }: ControlPlane): Endpoint[] {
  return [typesEndpoint(alerts), testEndpoint(alerts), messagesEndpoint(alerts)];
}

function typesEndpoint(alerts: Alerts): Endpoint {
  return {
    method: "GET",
    path: `${at.path}/types`,
    takesBody: false,
    description: {
      summary: "List the types of alerts",
      description: "Each with the schema and an example of its `config`.",
      tags: [at.tag],
      responses: listResponses("AlertType", [400, 403, 500]),
    },
    answer: (call) => {
      requireKnownQuery(call, []);
      return { body: alerts.types() };
    },
  };
}

function messagesEndpoint(alerts: Alerts): Endpoint {
  return {
    method: "GET",
    path: `${at.path}/:id/messages`,
    takesBody: false,
    description: {
      summary: "List the notifications of an alert",
      description:
        "The last 100 notifications, newest first, with their delivery state. The gateway stores them in memory while it runs" +
        " and the alert is enabled. Tests are not included.",
      tags: [at.tag],
      parameters: [idParameter("alerts")],
      responses: listResponses("AlertMessage", [400, 403, 404, 500]),
    },
    answer: (call) => {
      requireKnownQuery(call, []);
      return { body: alerts.messages(idOf(call)) };
    },
  };
}

function testEndpoint(alerts: Alerts): Endpoint {
  return {
    method: "POST",
    path: `${at.path}/:id/test`,
    takesBody: false,
    description: {
      summary: "Test an alert",
      description:
        "Sends one test notification, even if the alert is disabled, and returns 200 with the result.",
      tags: [at.tag],
      parameters: [idParameter("alerts")],
      responses: plainResponses("AlertTest", "Result of the test", [400, 403, 404, 409, 500]),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      return { body: await alerts.test(idOf(call), call.principal) };
    },
  };
}
