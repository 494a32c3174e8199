// Endpoints of the schemas of plugins; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { listResponses, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { descriptionOf } from "./resource-endpoints.ts";

const at = descriptionOf("plugins");

export function pluginEndpoints({ plugins }: ControlPlane): Endpoint[] {
  return [
    {
      method: "GET",
      path: `${at.path}/schemas`,
      takesBody: false,
      description: {
        summary: "List the available plugins",
        description: "Each with the schema, the defaults and an example of its configuration.",
        tags: [at.tag],
        responses: listResponses("PluginSchema", [400, 403, 500]),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: plugins.descriptions() };
      },
    },
    {
      method: "GET",
      path: `${at.path}/schemas/:name`,
      takesBody: false,
      description: {
        summary: "Get the schema of a plugin",
        tags: [at.tag],
        parameters: [
          {
            name: "name",
            in: "path",
            required: true,
            description: "Name of the plugin",
            schema: { type: "string" },
          },
        ],
        responses: plainResponses("PluginSchema", "Schema of the plugin", [400, 403, 404, 500]),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return { body: plugins.description(call.params["name"] ?? "") };
      },
    },
  ];
}
