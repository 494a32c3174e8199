// Certificates: what proves the names that are served over HTTPS; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";
import type { PageProps } from "../../pages.ts";

export default function CertificatesPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", domains: [], source: "acme" }}
      table={{
        resource: "certificates",
        page: "certificates",
        title: "Certificates",
        text: "What proves the names that are served over HTTPS.",
        columns: [
          { title: "Domains", render: ({ domains }) => domains.join(", ") },
          {
            title: "State",
            render: ({ status, last_error: error }) => <StatusDot state={status} detail={error} />,
            width: "7rem",
          },
          { title: "Runs out", render: ({ not_after: at }) => <RelativeTime at={at} never="" /> },
        ],
        states: [
          { value: "valid", label: "Valid", fits: ({ status }) => status === "valid" },
          { value: "failed", label: "Failed", fits: ({ status }) => status === "failed" },
        ],
        empty: {
          title: "No certificates yet",
          text: "An application orders its own. Create one here to upload a certificate or for a route.",
        },
      }}
    />
  );
}
