// Consumers: who uses the proxied APIs; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function ConsumersPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ username: "", groups: [] }}
      table={{
        resource: "consumers",
        page: "consumers",
        title: "Consumers",
        text: "Who uses the proxied APIs: people and programs with credentials.",
        columns: [{ title: "Groups", render: ({ groups }) => groups.join(", ") }],
        empty: {
          title: "No consumers yet",
          text: "Create one for each person or program that gets a key, and a plugin that asks for it.",
        },
      }}
    />
  );
}
