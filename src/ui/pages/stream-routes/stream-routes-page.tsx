// Stream routes: the list, and which form to open.
import { useCallback, useMemo } from "react";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { resourcePage } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { UnboundPorts } from "../../parts/unbound-ports.tsx";
import { StreamRouteForm } from "./stream-route-form.tsx";

type StreamRoute = Schemas["StreamRoute"];

export default resourcePage("stream-routes", StreamRouteList, StreamRouteForm);

function StreamRouteList() {
  const services = useResourceList("services");
  const names = useMemo(
    () => new Map(services.data?.map(({ id, name }) => [id, name])),
    [services.data],
  );
  const searchText = useCallback(
    ({ service_id, listen_port, port_range }: StreamRoute) =>
      `${names.get(service_id) ?? ""} ${listen_port ?? port_range}`,
    [names],
  );
  return (
    <ResourceTable
      resource="stream-routes"
      page="stream-routes"
      title="Stream routes"
      text="TCP and UDP ports whose traffic the gateway forwards to a service."
      columns={[
        {
          title: "Listens on",
          sortBy: ({ listen_port: port }) => port,
          render: (route) => <ListenAddress route={route} />,
        },
        {
          title: "Service",
          sortBy: ({ service_id: id }) => names.get(id) ?? null,
          render: ({ service_id: id }) => (
            <Link className="row-link" href={pagePath("services", id)}>
              {names.get(id) ?? "…"}
            </Link>
          ),
        },
        {
          title: "TLS",
          sortBy: ({ tls_mode: mode }) => tlsText[mode],
          render: ({ tls_mode: mode }) => tlsText[mode],
          width: "8rem",
        },
      ]}
      searchText={searchText}
      empty={{
        title: "No stream routes yet",
        text: "Use one for databases, game servers, mail and everything else that is not HTTP.",
      }}
    />
  );
}

const tlsText: Readonly<Record<StreamRoute["tls_mode"], string>> = {
  none: "",
  passthrough: "passthrough",
  terminate: "terminate",
};

function ListenAddress({ route }: { readonly route: StreamRoute }) {
  const { id, protocol, listen_address, listen_port, port_range, sni } = route;
  return (
    <div className="cell-line">
      <span className="mono">
        {protocol} {listen_address}:{listen_port ?? port_range}
        {sni.length > 0 && ` (${sni.join(", ")})`}
      </span>
      <UnboundPorts id={id} />
    </div>
  );
}
