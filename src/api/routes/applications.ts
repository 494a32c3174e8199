// Endpoints of applications; decodes nothing itself.
import { checkUpstream } from "../../applications/upstream-check.ts";
import type { ControlPlane } from "../../control-plane.ts";
import { bodyOf, plainResponses, queryParameter } from "../description.ts";
import type { Call, Endpoint, Reply } from "../endpoint.ts";
import { flagOf, replyWritten, requireKnownQuery, writeOptionsOf } from "../write-options.ts";
import { descriptionOf, idOf, readEndpoints, writeEndpoints } from "./resource-endpoints.ts";

const at = descriptionOf("applications");

const adopt = queryParameter(
  "adopt",
  "1: adopt existing objects and accept manual changes; with dry_run the response shows the changes",
);
const force = queryParameter(
  "force",
  "1: revert manual changes and deletions; on PUT `reset_drift` is the same",
);
const resetDrift = queryParameter("reset_drift", "1: the same as force");

export function applicationEndpoints({ applications, changes }: ControlPlane): Endpoint[] {
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
  const writing = writeEndpoints("applications", applications).map((endpoint): Endpoint => {
    const answer = answers[endpoint.method];
    if (answer === undefined) return endpoint;
    const { parameters = [] } = endpoint.description;
    const more = endpoint.method === "POST" ? [adopt] : [adopt, force, resetDrift];
    const description = { ...endpoint.description, parameters: [...parameters, ...more] };
    return { ...endpoint, answer, description };
  });
  return [checkEndpoint(changes), ...readEndpoints("applications", applications), ...writing];
}

function checkEndpoint(changes: ControlPlane["changes"]): Endpoint {
  return {
    method: "POST",
    path: `${at.path}/check-upstream`,
    takesBody: true,
    description: {
      summary: "Check whether an application responds",
      description:
        "Requests the URL as the gateway would request a target; addresses that no target may have are rejected. Does not follow redirects. Returns 200 with the result, and changes nothing.",
      tags: [at.tag],
      requestBody: bodyOf("UpstreamCheckInput"),
      responses: plainResponses("CheckReport", "Result of the check", [400, 403, 413, 415, 500]),
    },
    answer: async (call) => {
      requireKnownQuery(call, []);
      return { body: await checkUpstream(call.body, changes) };
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
