// Renders the pages of plugins in Markdown from their definitions; writes no file.
import type { AnyPlugin } from "../src/pdk/definition.ts";
import { fieldTable, type Schema } from "./field-table.ts";

const GENERATED = "<!-- Written by `make docs` from the plugin itself; do not edit by hand. -->";

const scopeWords: Readonly<Record<string, string>> = {
  global: "global",
  service: "service",
  route: "route",
  consumer: "consumer",
  consumer_route: "consumer on a route",
  consumer_service: "consumer on a service",
  stream_route: "stream route",
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
      ? "When the plugin fails, the gateway responds 500; `on_error` changes that."
      : "When the plugin fails, the request continues without it; `on_error` changes that.";
  const several = plugin.allowsMultiple === true ? " A scope may have several instances." : "";
  const admin = plugin.needsAdmin === true ? " Only admins may write instances." : "";
  return `# ${plugin.name}

${GENERATED}

${plugin.summary}.

${plugin.description.trim()}

| | |
| --- | --- |
| Phases | ${plugin.phases.join(", ")} |
| Scopes | ${plugin.scopes.map((scope) => scopeWords[scope] ?? scope).join(", ")} |
| Execution order | ${plugin.order} |

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
      `## ${title}\n\n| Plugin | Purpose | Phases | Order |\n| --- | --- | --- | --- |\n${lines.join("\n")}`,
    ];
  });
  return `# Plugins

${GENERATED}

Plugins authenticate, authorize, limit, change and log requests. An _instance_ of a plugin has a scope: global, a service, a route, a
consumer, or a consumer with one of these. Of several instances of one plugin the one with the most specific scope runs (consumer
with route, consumer with service, consumer, route, service, global).

\`\`\`sh
curl -X POST http://127.0.0.1:9080/api/v1/plugins -H "Content-Type: application/json" \\
  -d '{"name": "key-auth", "route_id": "shop"}'
\`\`\`

Within a phase (pre_auth, auth, access, request) plugins with a higher order run first; \`priority\` of an instance overrides the
order. Responses pass the plugins in reverse order, and the response of a plugin passes only those with a higher order. \`when\` limits
an instance to matching requests. \`POST /api/v1/routes/explain\` lists the plugins that would run for a request. To add your own, see
[writing a plugin](../writing-a-plugin.md).

${groups.join("\n\n")}
`;
}
