// Listeners: addresses and ports that HTTP is served on; the list, and which form to open.
import { Badge, Group, Text } from "@mantine/core";
import type { Schemas } from "../../api/resources.ts";
import { resourcePage } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { UnboundPorts } from "../../parts/unbound-ports.tsx";
import { ListenerForm } from "./listener-form.tsx";

export default resourcePage("listeners", ListenerList, ListenerForm);

function ListenerList() {
  return (
    <ResourceTable
      resource="listeners"
      page="listeners"
      title="Listeners"
      text="Addresses and ports that accept HTTP and HTTPS."
      columns={[
        {
          title: "Address",
          sortBy: ({ port }) => port,
          render: ({ id, address, port }) => (
            <Group gap={6}>
              <Text size="sm" className="mono" component="span">
                {address.includes(":") ? `[${address}]` : address}:{port}
              </Text>
              <UnboundPorts id={id} />
            </Group>
          ),
        },
        {
          title: "Hosts",
          sortBy: ({ hosts }) => hosts[0] ?? null,
          render: ({ hosts }) => (
            <Text size="sm" component="span">
              {hosts.length === 0 ? "any" : hosts.join(", ")}
            </Text>
          ),
        },
        {
          title: "Protocols",
          sortBy: ({ protocol }) => protocol,
          render: (listener) => <Protocols listener={listener} />,
        },
      ]}
      empty={{
        title: "No listeners",
        text: "The gateway accepts no HTTP connections without a listener. Most gateways have one for HTTP on port 80 and one for HTTPS on port 443.",
      }}
    />
  );
}

function Protocols({ listener }: { readonly listener: Schemas["Listener"] }) {
  const { protocol, http2, http3, client_auth, proxy_protocol, engine } = listener;
  const versions = ["HTTP/1.1", http2 ? "HTTP/2" : "", http3 ? "HTTP/3" : ""];
  return (
    <Group gap={6}>
      <Text size="sm" component="span">
        {protocol === "https" ? "TLS, " : "plain, "}
        {versions.filter((version) => version !== "").join(", ")}
      </Text>
      <Badge size="xs" variant="light" color="gray" tt="none">
        engine {engine}
      </Badge>
      {client_auth !== "none" && (
        <Badge size="xs" variant="light" color="gray" tt="none">
          client certificates
        </Badge>
      )}
      {proxy_protocol && (
        <Badge size="xs" variant="light" color="gray" tt="none">
          PROXY protocol
        </Badge>
      )}
    </Group>
  );
}
