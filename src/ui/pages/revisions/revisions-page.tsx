// Revisions: every change of the configuration, who made it and when; knows no other page.
import type { Schemas } from "../../api/resources.ts";
import { PageHead } from "../../parts/page-layout.tsx";
import { SimpleTable } from "../../parts/simple-table.tsx";
import { RelativeTime } from "../../parts/status.tsx";

export default function RevisionsPage() {
  return (
    <>
      <PageHead title="Revisions" text="Every change of the configuration, newest first." />
      <SimpleTable<Schemas["Revision"]>
        path="revisions"
        label="Revisions"
        isReversed
        keyOf={({ number }) => String(number)}
        columns={[
          { title: "Number", render: ({ number }) => number },
          { title: "When", render: ({ at }) => <RelativeTime at={at} /> },
          { title: "Who", render: ({ actor }) => actor },
          { title: "What", render: ({ summary }) => summary },
        ]}
        empty={{ title: "No changes yet", text: "The first change that you make appears here." }}
      />
    </>
  );
}
