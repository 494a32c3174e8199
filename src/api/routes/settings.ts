// Endpoints of the settings; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import {
  bodyOf,
  dryRunParameter,
  forceParameter,
  ifMatchParameter,
  patchOf,
  readResponses,
  writeResponses,
} from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { forcibleOptionsOf, replyRead, replyWritten, requireKnownQuery } from "../write-options.ts";

const path = "/api/v1/settings";
const tags = ["Settings"];

export function settingsEndpoints({ settings }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: { summary: "Get the settings", tags, responses: readResponses("Settings") },
      answer: (call) => {
        requireKnownQuery(call, []);
        return replyRead(settings.get());
      },
    },
    {
      method: "PUT",
      path,
      takesBody: true,
      description: {
        summary: "Replace the settings",
        description: "Absent fields return to their defaults.",
        tags,
        parameters: [dryRunParameter, forceParameter, ifMatchParameter],
        requestBody: bodyOf("SettingsInput"),
        responses: writeResponses("Settings"),
      },
      answer: async (call) => {
        const options = forcibleOptionsOf(call);
        return replyWritten(await settings.replace(call.body, options), options);
      },
    },
    {
      method: "PATCH",
      path,
      takesBody: true,
      description: {
        summary: "Change some settings",
        tags,
        parameters: [dryRunParameter, forceParameter, ifMatchParameter],
        requestBody: patchOf("SettingsInput"),
        responses: writeResponses("Settings"),
      },
      answer: async (call) => {
        const options = forcibleOptionsOf(call);
        return replyWritten(await settings.patch(call.body, options), options);
      },
    },
  ];
}
