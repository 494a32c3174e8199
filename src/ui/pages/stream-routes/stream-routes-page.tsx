// Stream routes: TCP and UDP ports whose traffic goes to a service; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function StreamRoutesPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", listen_port: 5432, protocol: "tcp", service_id: "" }}
      table={{
        resource: "stream-routes",
        page: "stream-routes",
        title: "Stream routes",
        text: "TCP and UDP ports whose traffic goes to a service byte for byte.",
        columns: [
          { title: "Protocol", render: ({ protocol }) => protocol, width: "6rem" },
          {
            title: "Listens on",
            render: (route) =>
              `${route.listen_address}:${route.listen_port ?? route.port_range ?? ""}`,
          },
        ],
        empty: {
          title: "No stream routes yet",
          text: "Use one for databases, game servers, mail and everything else that is not HTTP.",
        },
      }}
    />
  );
}
