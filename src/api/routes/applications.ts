// Endpoints of applications; decodes nothing itself.
import type { ControlPlane } from "../../control/control-plane.ts";
import { checkUpstream } from "../../control/applications/upstream-check.ts";
import { bodyOf, plainResponses, queryParameter } from "../description.ts";
import type { Call, Endpoint, Reply } from "../endpoint.ts";
import { flagOf, replyWritten, requireKnownQuery, writeOptionsOf } from "../write-options.ts";
import { idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = {
  path: "/api/v1/applications",
  word: "application",
  tag: "Applications",
  schema: "Application",
  inputSchema: "ApplicationInput",
  isNamed: true,
};

const adopt = queryParameter(
  "adopt",
  "1: take over objects that exist already, and accept what was changed by hand; try it with dry_run, the answer tells what would change",
);
const force = queryParameter(
  "force",
  "1: bring back everything that was changed or deleted by hand; on PUT `reset_drift` is the same",
);
const resetDrift = queryParameter("reset_drift", "1: the same as force");

export function applicationEndpoints({
  applications,
  managementAddresses,
}: ControlPlane): Endpoint[] {
  const answers: Readonly<Record<string, (call: Call) => Promise<Reply>>> = {
    POST: async (call) => {
      const options = optionsOf(call, ["adopt"]);
      return replyWritten(await applications.create(call.body, options), options);
    },
    PUT: async (call) => {
      const options = optionsOf(call, ["adopt", "force", "reset_drift"]);
      return replyWritten(await applications.replace(idOf(call), call.body, options), options);
    },
    PATCH: async (call) => {
      const options = optionsOf(call, ["adopt", "force", "reset_drift"]);
      return replyWritten(await applications.patch(idOf(call), call.body, options), options);
    },
  };
  const writing = writeEndpoints(at, applications).map((endpoint): Endpoint => {
    const answer = answers[endpoint.method];
    if (answer === undefined) return endpoint;
    const { parameters = [] } = endpoint.description;
    const more = endpoint.method === "POST" ? [adopt] : [adopt, force, resetDrift];
    const description = { ...endpoint.description, parameters: [...parameters, ...more] };
    return { ...endpoint, answer, description };
  });
  return [checkEndpoint(managementAddresses), ...readEndpoints(at, applications), ...writing];
}

function checkEndpoint(managementAddresses: ControlPlane["managementAddresses"]): Endpoint {
  return {
    method: "POST",
    path: `${at.path}/check-upstream`,
    takesBody: true,
    description: {
      summary: "Check whether an application answers",
      description:
        "Asks the address for its first page, as a target would be asked; what no target may be is refused. Redirects are not followed. Answers 200 whatever is found, and changes nothing.",
      tags: [at.tag],
      requestBody: bodyOf("UpstreamCheckInput"),
      responses: plainResponses("CheckReport", "What was found", [400, 403, 413, 415, 500]),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      return { body: await checkUpstream(call.body, managementAddresses()) };
    },
  };
}

function optionsOf(call: Call, known: readonly string[]) {
  const has = (name: string) => known.includes(name) && flagOf(call, name);
  return {
    ...writeOptionsOf(call, known),
    adopt: has("adopt"),
    force: has("force") || has("reset_drift"),
  };
}
