// Endpoints of the schemas of plugins, and of those of the directory; decodes nothing itself.
import type { ControlPlane } from "../../control-plane.ts";
import { listResponses, plainResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";
import { includesRole } from "../../control/principal.ts";
import { ApiError } from "../../model/error.ts";
import type { PluginDirectoryView } from "../../control/watched-plugins.ts";
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
    ...directoryEndpoints(plugins),
  ];
}

function directoryEndpoints({ directory }: ControlPlane["plugins"]): Endpoint[] {
  const path = `${at.path}/directory`;
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: {
        summary: "Get the plugins of the directory",
        description: "Each file with the hash of its code, and why it is not served as it is.",
        tags: [at.tag],
        responses: plainResponses(
          "PluginDirectory",
          "The plugins of the directory",
          [400, 403, 500],
        ),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        const view = directory?.view() ?? noDirectory;
        return { body: includesRole(call.principal.role, "editor") ? view : withoutMessages(view) };
      },
    },
    {
      method: "POST",
      path,
      takesBody: false,
      description: {
        summary: "Load changed plugins of the directory now",
        description:
          "Returns when all workers serve the changed files, or go on with the code before them: `problem` of a plugin says why. " +
          "Without this request the gateway looks for changes twice a second.",
        tags: [at.tag],
        responses: plainResponses(
          "PluginDirectory",
          "The plugins of the directory",
          [400, 403, 404, 500],
        ),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        if (directory === null || isUnused(directory.view()))
          throw new ApiError(
            404,
            "the gateway has no directory of plugins: set plugins_directory of the settings, or start it with --plugins-dir",
          );
        await directory.look(true);
        return { body: directory.view() };
      },
    },
  ];
}

/** The message of an error of any code may hold anything: it is for those who change the configuration. */
const withoutMessages = (view: PluginDirectoryView): PluginDirectoryView => ({
  ...view,
  plugins: view.plugins.map(({ problem, ...plugin }) => ({
    ...plugin,
    problem: problem && { ...problem, message: "an editor or admin sees the reason" },
  })),
});

const isUnused = ({ directory, plugins }: PluginDirectoryView) =>
  directory === null && plugins.length === 0;

const noDirectory: PluginDirectoryView = {
  directory: null,
  source: "setting",
  reloads: 0,
  reloads_since_replacement: 0,
  worker_replacements: 0,
  plugins: [],
  problems: [],
};
