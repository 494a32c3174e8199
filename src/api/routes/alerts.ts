// Endpoints of alerts, of the ways to send them, and of the test of one; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import { listResponses, pathParameter, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/alerts",
  word: "alert",
  tag: "Alerts",
  schema: "Alert",
  inputSchema: "AlertInput",
  parents: ["service_id", "route_id"],
  isNamed: true,
};

type Alerts = ControlPlane["alerts"];

export function alertEndpoints({ alerts }: ControlPlane): Endpoint[] {
  return [
    typesEndpoint(alerts),
    ...readEndpoints(at, alerts),
    ...writeEndpoints(at, alerts),
    testEndpoint(alerts),
    messagesEndpoint(alerts),
  ];
}

function typesEndpoint(alerts: Alerts): Endpoint {
  return {
    method: "GET",
    path: `${at.path}/types`,
    takesBody: false,
    description: {
      summary: "List the ways to send alerts",
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
      summary: "List what an alert has told",
      description:
        "The last 100 messages, the newest first, and what became of them. They are kept in memory, as long as the gateway runs" +
        " and the alert is enabled. Tests are not among them.",
      tags: [at.tag],
      parameters: [pathParameter("Id or name of the alert")],
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
        "Sends one message that says it is a test, also of an alert that is disabled, and answers 200 with what came of it.",
      tags: [at.tag],
      parameters: [pathParameter("Id or name of the alert")],
      responses: plainResponses("AlertTest", "What happened", [400, 403, 404, 409, 500]),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      return { body: await alerts.test(idOf(call), call.principal) };
    },
  };
}
