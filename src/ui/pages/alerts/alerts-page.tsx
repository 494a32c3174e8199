// Alerts: who is told when something goes wrong; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function AlertsPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", type: "webhook", config: {} }}
      table={{
        resource: "alerts",
        page: "alerts",
        title: "Alerts",
        text: "Who is told when a target is down, a certificate runs out or errors pile up.",
        columns: [{ title: "Type", render: ({ type }) => type }],
        empty: {
          title: "No alerts yet",
          text: "Have yourself told by mail, chat or webhook before your users tell you.",
        },
      }}
    />
  );
}
