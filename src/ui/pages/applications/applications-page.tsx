// Applications: a domain, where it runs, and HTTPS in one object; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function ApplicationsPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", domains: [], upstream: "http://", https: { mode: "off" } }}
      table={{
        resource: "applications",
        page: "applications",
        title: "Applications",
        text: "A domain, where it runs, and HTTPS: everything for one site in one place.",
        columns: [{ title: "Domains", render: ({ domains }) => domains.join(", ") }],
        empty: {
          title: "No applications yet",
          text: "Name a domain and the address where your application runs, and the gateway does the rest.",
        },
      }}
    />
  );
}
