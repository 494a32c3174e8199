// Endpoints of the history; decodes nothing but numbers.
import type { ControlPlane } from "../../control-plane.ts";
import { ApiError } from "../../model/error.ts";
import {
  dryRunParameter,
  forceParameter,
  listResponses,
  pathParameter,
  plainResponses,
  writeResponses,
} from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import {
  changeHeaders,
  forcibleOptionsOf,
  requireKnownQuery,
  writeOptionsOf,
} from "../write-options.ts";

const path = "/api/v1/revisions";
const tags = ["Revisions"];

export function revisionEndpoints({ revisions }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "List revisions",
        description: "Every change of the configuration within settings.retention.",
        tags,
        responses: listResponses("Revision", [400, 403, 500]),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: revisions.list(call.principal) };
      },
    },
    {
      method: "GET",
      path: `${path}/:id`,
      takesBody: false,
      description: {
        summary: "Get a revision and its changes",
        tags,
        parameters: [pathParameter("Number of the revision")],
        responses: plainResponses("RevisionDetail", "The revision", [400, 403, 404, 500]),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: revisions.get(numberOf(call), call.principal) };
      },
    },
    {
      method: "POST",
      path: `${path}/:id/undo`,
      takesBody: false,
      description: {
        summary: "Undo the change of a revision",
        description:
          "Creates a new revision; later changes of other objects stay. 409 when the same objects have changed since, 403 for a change of another user.",
        tags,
        parameters: [pathParameter("Number of the revision"), dryRunParameter],
        responses: writeResponses("Changes"),
      },
      answer: async (call) => {
        const options = writeOptionsOf(call);
        const { changes, revision, warnings } = await revisions.undo(numberOf(call), {
          by: call.principal,
          dryRun: options.dryRun,
        });
        return { body: { changes }, headers: changeHeaders(revision, options, warnings) };
      },
    },
    {
      method: "POST",
      path: `${path}/:id/restore`,
      takesBody: false,
      description: {
        summary: "Restore the configuration of a revision",
        description:
          "Creates a new revision. Users, tokens, single sign-on and referenced secrets stay unchanged.",
        tags,
        parameters: [pathParameter("Number of the revision"), dryRunParameter, forceParameter],
        responses: writeResponses("Changes"),
      },
      answer: async (call) => {
        const options = forcibleOptionsOf(call);
        const { changes, revision, warnings } = await revisions.restore(numberOf(call), {
          by: call.principal,
          dryRun: options.dryRun,
          force: options.force === true,
        });
        return { body: { changes }, headers: changeHeaders(revision, options, warnings) };
      },
    },
  ];
}

function numberOf({ params }: Call): number {
  const text = params["id"] ?? "";
  if (!/^\d{1,15}$/.test(text)) throw new ApiError(404, `revision "${text}" does not exist`);
  return Number(text);
}
