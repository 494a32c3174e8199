// DNS providers: how names are proved with records; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function DnsProvidersPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", type: "rfc2136", config: {} }}
      table={{
        resource: "dns-providers",
        page: "dns-providers",
        title: "DNS providers",
        text: "Where records are written that prove a name, as wildcard certificates need.",
        columns: [{ title: "Type", render: ({ type }) => type }],
        empty: {
          title: "No providers yet",
          text: "You need one for wildcard certificates, and where port 80 cannot be reached.",
        },
      }}
    />
  );
}
