// Listeners: addresses and ports that HTTP is served on; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function ListenersPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", address: "0.0.0.0", port: 8081, protocol: "http" }}
      table={{
        resource: "listeners",
        page: "listeners",
        title: "Listeners",
        text: "Addresses and ports that HTTP and HTTPS are served on.",
        columns: [
          { title: "Protocol", render: ({ protocol }) => protocol, width: "6rem" },
          { title: "Address", render: ({ address, port }) => `${address}:${port}` },
        ],
        empty: {
          title: "No listeners",
          text: "Nothing is served over HTTP until there is one.",
        },
      }}
    />
  );
}
