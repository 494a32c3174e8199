// Services: applications behind the gateway and the servers they run on; the list, and which form to open.
import type { Schemas } from "../../api/resources.ts";
import { resourcePage } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { StatusDot } from "../../parts/status.tsx";
import { ServiceForm } from "./service-form.tsx";
import { stateOf } from "./service-state.ts";

type Service = Schemas["Service"];

export default resourcePage("services", ServiceList, ServiceForm);

const hasState = (state: string) => (service: Service) => stateOf(service) === state;

function ServiceList() {
  return (
    <ResourceTable
      resource="services"
      page="services"
      title="Services"
      text="Applications behind the gateway, and the servers they run on."
      columns={[
        {
          title: "Targets",
          sortBy: ({ targets }) => targets.length,
          render: (service) => <Targets service={service} />,
        },
        {
          title: "Protocol",
          sortBy: ({ protocol }) => protocol,
          render: ({ protocol }) => protocol,
          width: "6rem",
        },
        {
          title: "Health",
          sortBy: stateOf,
          render: (service) => <StatusDot state={stateOf(service)} />,
          width: "7rem",
        },
      ]}
      states={[
        { value: "unhealthy", label: "Unhealthy", fits: hasState("unhealthy") },
        { value: "failing", label: "Failing", fits: hasState("failing") },
        { value: "degraded", label: "Degraded", fits: hasState("degraded") },
        { value: "healthy", label: "Healthy", fits: hasState("healthy") },
      ]}
      empty={{
        title: "No services yet",
        text: "A service is an application that the gateway forwards requests to. Add its targets, then a route to it.",
      }}
    />
  );
}

function Targets({ service: { targets } }: { readonly service: Service }) {
  const [first] = targets as Schemas["Target"][];
  if (first === undefined) return <span className="is-minor">none</span>;
  return (
    <div className="cell-line">
      <span className="mono">
        {first.host}
        {first.port === null ? "" : `:${first.port}`}
      </span>
      {targets.length > 1 && <span className="is-minor">and {targets.length - 1} more</span>}
    </div>
  );
}
