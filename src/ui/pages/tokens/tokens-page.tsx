// Tokens: how programs use the management API; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import { RelativeTime, StatusBadge } from "../../parts/status.tsx";
import type { PageProps } from "../../pages.ts";

export default function TokensPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", role: "editor" }}
      table={{
        resource: "tokens",
        page: "tokens",
        title: "Tokens",
        text: "How programs use the management API.",
        columns: [
          { title: "Role", render: ({ role }) => <StatusBadge state={role} />, width: "6rem" },
          { title: "Last used", render: ({ last_used_at: at }) => <RelativeTime at={at} /> },
        ],
        canClone: false,
        empty: { title: "No tokens yet", text: "Create one for each program that deploys." },
      }}
    />
  );
}
