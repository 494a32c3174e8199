// Routes: which requests go to which service; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import { useResourceList } from "../../api/queries.ts";
import type { PageProps } from "../../pages.ts";

export default function RoutesPage(props: PageProps) {
  const services = useResourceList("services");
  const nameOfService = (id: string | null) =>
    services.data?.find((service) => service.id === id)?.name ?? id ?? "none";
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "", service_id: "", hosts: [], paths: ["/"] }}
      table={{
        resource: "routes",
        page: "routes",
        title: "Routes",
        text: "Which requests go to which service.",
        columns: [
          { title: "Hosts", render: ({ hosts }) => hosts.join(", ") || "any" },
          { title: "Service", render: (route) => nameOfService(route.service_id) },
          { title: "Priority", render: ({ priority }) => priority, width: "5rem" },
        ],
        searchText: (route) => nameOfService(route.service_id),
        empty: {
          title: "No routes yet",
          text: "A route says which hosts and paths go to a service. Create a service first, then its route.",
        },
      }}
    />
  );
}
