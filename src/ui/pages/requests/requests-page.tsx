// Requests that the gateway served last; knows no other page.
import type { Schemas } from "../../api/resources.ts";
import { PageHead } from "../../parts/page-layout.tsx";
import { SimpleTable } from "../../parts/simple-table.tsx";
import { RelativeTime } from "../../parts/status.tsx";

export default function RequestsPage() {
  return (
    <>
      <PageHead title="Requests" text="What the gateway served last, and why it ended as it did." />
      <SimpleTable<Schemas["Request"]>
        path="requests"
        query={{ limit: 200 }}
        label="Requests"
        keyOf={({ id }) => id}
        columns={[
          { title: "When", render: ({ time }) => <RelativeTime at={time} /> },
          { title: "Status", render: ({ status }) => status ?? "–" },
          {
            title: "Request",
            render: ({ method, host, path }) => `${method ?? ""} ${host ?? ""}${path ?? ""}`,
          },
          { title: "Route", render: ({ route }) => route?.name ?? "none" },
          { title: "Time", render: ({ timings }) => `${Math.round(timings.total)} ms` },
          { title: "Reasons", render: ({ reasons }) => reasons.join(", ") },
        ]}
        empty={{
          title: "No requests yet",
          text: "Send one through the gateway and it appears here.",
        }}
      />
    </>
  );
}
