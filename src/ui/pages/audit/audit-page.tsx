// The audit log: who did what, and what was refused; knows no other page.
import type { Schemas } from "../../api/resources.ts";
import { PageHead } from "../../parts/page-layout.tsx";
import { SimpleTable } from "../../parts/simple-table.tsx";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";

export default function AuditPage() {
  return (
    <>
      <PageHead title="Audit log" text="Who did what, and what was refused; newest first." />
      <SimpleTable<Schemas["AuditEntry"]>
        path="audit"
        label="Audit log"
        isReversed
        keyOf={({ at }, index) => `${at} ${index}`}
        columns={[
          { title: "When", render: ({ at }) => <RelativeTime at={at} /> },
          { title: "Who", render: ({ actor }) => actor },
          { title: "Did", render: ({ action }) => action },
          { title: "To", render: (entry) => `${entry.kind} ${entry.object_name ?? ""}` },
          { title: "Result", render: ({ result }) => <StatusDot state={result} /> },
          { title: "From", render: ({ address }) => address },
        ]}
        empty={{ title: "Nothing yet", text: "Sign-ins and changes appear here." }}
      />
    </>
  );
}
