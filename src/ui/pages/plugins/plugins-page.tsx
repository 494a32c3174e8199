// Plugins: what happens to requests on their way; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function PluginsPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "cors", config: {} }}
      table={{
        resource: "plugins",
        page: "plugins",
        title: "Plugins",
        text: "What happens to requests on their way: limits, sign-in, headers, caching and more.",
        columns: [
          { title: "Plugin", render: ({ name }) => name },
          {
            title: "Applies to",
            render: (plugin) =>
              (["route_id", "service_id", "consumer_id", "stream_route_id"] as const)
                .filter((field) => plugin[field] !== null)
                .map((field) => field.replace("_id", "").replace("_", " "))
                .join(", ") || "everything",
          },
        ],
        empty: {
          title: "No plugins yet",
          text: "Add one to limit rates, ask for credentials, set headers or cache answers.",
        },
      }}
    />
  );
}
