// Secrets: values that configurations refer to and nobody reads back; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import type { PageProps } from "../../pages.ts";

export default function SecretsPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", value: "" }}
      table={{
        resource: "secrets",
        page: "secrets",
        title: "Secrets",
        text: "Values that other objects refer to by name and that nobody can read back.",
        columns: [{ title: "Changed", render: ({ updated_at: at }) => <RelativeTime at={at} /> }],
        canClone: false,
        empty: {
          title: "No secrets yet",
          text: "Keep a password or key here once, and write its name where it is needed.",
        },
      }}
    />
  );
}
