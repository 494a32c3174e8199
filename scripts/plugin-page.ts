// Generates the Markdown pages of plugins from their definitions; writes no file.
import type { AnyPlugin } from "../src/pdk/definition.ts";
import { fieldTable, type Schema } from "./field-table.ts";

const GENERATED = "<!-- Written by `make docs` from the plugin itself; do not edit by hand. -->";

const scopeWords: Readonly<Record<string, string>> = {
  global: "everything",
  service: "a service",
  route: "a route",
  consumer: "a consumer",
  consumer_route: "a consumer on a route",
  consumer_service: "a consumer on a service",
  stream_route: "a stream route",
};

const groupWords: Readonly<Record<AnyPlugin["group"], string>> = {
  authentication: "Authentication",
  access: "Access control",
  traffic: "Traffic",
  content: "Content",
  observability: "Logging and tracing",
};

/** The page of one plugin. */
export function pageOf(plugin: AnyPlugin): string {
  const fails =
    plugin.onError === "closed"
      ? "A request is refused with 500 when the plugin itself fails; `on_error` changes that."
      : "A request goes on without the plugin when it fails; `on_error` changes that.";
  const several = plugin.allowsMultiple === true ? " Several instances may be in one place." : "";
  const admin = plugin.needsAdmin === true ? " Only admins may write it." : "";
  return `# ${plugin.name}

${GENERATED}

${plugin.summary}.

${plugin.description.trim()}

| | |
| --- | --- |
| runs in | ${plugin.phases.join(", ")} |
| can be put on | ${plugin.scopes.map((scope) => scopeWords[scope] ?? scope).join(", ")} |
| place in the order | ${plugin.order} |

${fails}${several}${admin}

## Settings

${fieldTable(plugin.config as Schema)}

## Example

\`\`\`sh
curl -X POST http://127.0.0.1:9080/api/v1/plugins -H "Content-Type: application/json" \\
  -d '${JSON.stringify({ name: plugin.name, config: plugin.example }).replaceAll("'", "'\\''")}'
\`\`\`
`;
}

/** The list of all. */
export function listPage(plugins: readonly AnyPlugin[]): string {
  const groups = Object.entries(groupWords).flatMap(([group, title]) => {
    const own = plugins.filter((plugin) => plugin.group === group);
    if (own.length === 0) return [];
    const lines = own
      .toSorted((a, b) => b.order - a.order)
      .map(({ name, summary, phases, order }) => {
        return `| [${name}](${name}.md) | ${summary} | ${phases.join(", ")} | ${order} |`;
      });
    return [
      `## ${title}\n\n| plugin | what it does | runs in | order |\n| --- | --- | --- | --- |\n${lines.join("\n")}`,
    ];
  });
  return `# Plugins

${GENERATED}

A plugin does something with requests on their way: it finds out who the client is, refuses, limits, changes, logs. An
_instance_ of a plugin is put on everything, on a service, a route, a consumer, or on a consumer with one of these; of several
instances of one plugin the one in the most special place runs (consumer with route, consumer with service, consumer, route,
service, everything).

\`\`\`sh
curl -X POST http://127.0.0.1:9080/api/v1/plugins -H "Content-Type: application/json" \\
  -d '{"name": "key-auth", "route_id": "shop"}'
\`\`\`

Within a phase (early, auth, access, request) those with a higher number run first; \`priority\` of an instance changes its place.
Answers pass the plugins in the reverse order, and an answer that a plugin gave passes only those before it. \`when\` limits an
instance to some requests. \`POST /api/v1/routes/explain\` lists what would run for a request. How to add one of your own:
[writing a plugin](../writing-a-plugin.md).

${groups.join("\n\n")}
`;
}
