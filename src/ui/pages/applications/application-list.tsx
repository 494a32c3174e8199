// The list of applications: domains, state, HTTPS, and the maintenance switch.
import { Badge } from "@mantine/core";
import { IconExternalLink } from "@tabler/icons-react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useMayChange, useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { StatusDot } from "../../parts/status.tsx";
import { hasDrift, httpsOf, openUrl, redirectOf, stateOf } from "./application-state.ts";

type Application = Read<"applications">;

const isState = (state: string) => (application: Application) =>
  stateOf(application).state === state;

const states = [
  { value: "served", label: "Served", fits: isState("served") },
  { value: "maintenance", label: "Maintenance", fits: isState("maintenance") },
  { value: "unreachable", label: "Unreachable", fits: isState("unreachable") },
  { value: "drift", label: "Drift", fits: hasDrift },
  {
    value: "certificate",
    label: "Certificate problem",
    fits: (application: Application) => httpsOf(application).tone === "bad",
  },
];

export function ApplicationList() {
  const { data: listeners = [] } = useResourceList("listeners");
  const maintenance = useMaintenance();
  return (
    <ResourceTable
      resource="applications"
      page="applications"
      title="Applications"
      text="A domain, its upstream and HTTPS in one object."
      subtitle={(application) =>
        application.upstream ?? redirectOf(application) ?? serversOf(application)
      }
      columns={[
        {
          title: "Domains",
          sortBy: ({ domains }) => domains[0] ?? null,
          render: (application) => <Domains application={application} listeners={listeners} />,
        },
        {
          title: "State",
          sortBy: (application) => stateOf(application).state,
          render: (application) => <State application={application} />,
          width: "9rem",
        },
        {
          title: "HTTPS",
          sortBy: (application) => httpsOf(application).state,
          render: (application) => <Https application={application} />,
          width: "7rem",
        },
        {
          title: "Maintenance",
          sortBy: ({ maintenance }) => Number(maintenance),
          render: (application) => <Maintenance application={application} {...maintenance} />,
          width: "6.5rem",
        },
      ]}
      states={states}
      empty={{
        title: "No applications yet",
        text: "Enter a domain and an upstream URL; the gateway creates service, route and certificate.",
      }}
    />
  );
}

const serversOf = ({ targets }: Application): string =>
  targets.length === 1 ? "1 server" : `${targets.length} servers`;

interface DomainsProps {
  readonly application: Application;
  readonly listeners: readonly Read<"listeners">[];
}

/** Plain elements, as in all cells: tens of rows are rendered at each step of scrolling. */
function Domains({ application, listeners }: DomainsProps) {
  const { domains, https } = application;
  return (
    <>
      {domains.slice(0, 3).map((domain) => {
        const url = openUrl(domain, https.mode, listeners);
        return (
          <div key={domain}>
            {url === null ? (
              domain
            ) : (
              <a
                className="row-link"
                href={url}
                target="_blank"
                rel="noreferrer"
                title={`Open ${url}`}
              >
                {domain}{" "}
                <IconExternalLink
                  size={13}
                  aria-label="opens in a new tab"
                  style={{ verticalAlign: "-2px" }}
                />
              </a>
            )}
          </div>
        );
      })}
      {domains.length > 3 && <div className="is-minor">and {domains.length - 3} more</div>}
    </>
  );
}

function State({ application }: { readonly application: Application }) {
  const { state, tone, detail } = stateOf(application);
  return (
    <>
      <StatusDot state={state} tone={tone} detail={detail} />
      {hasDrift(application) && (
        <div>
          <Badge size="xs" variant="light" color="yellow" tt="none">
            drift
          </Badge>
        </div>
      )}
    </>
  );
}

function Https({ application }: { readonly application: Application }) {
  const { state, tone, detail } = httpsOf(application);
  return <StatusDot state={state} tone={tone} detail={detail} />;
}

/** One change for all rows. */
function useMaintenance() {
  const connection = useConnection();
  const { mutate, isPending, variables } = useChange<Application, MaintenanceChange>({
    send: ({ application: { id }, isOn }) =>
      connection.send(`/applications/${id}`, { method: "PATCH", body: { maintenance: isOn } }),
    touches: ["applications"],
    canUndo: true,
    done: ({ name }, { isOn }) =>
      isOn ? `${name} is under maintenance` : `${name} is served again`,
  });
  return {
    mayChange: useMayChange("editor"),
    pendingId: isPending ? variables.application.id : null,
    onSwitch: mutate,
  };
}

interface MaintenanceChange {
  readonly application: Application;
  readonly isOn: boolean;
}

interface MaintenanceProps {
  readonly application: Application;
  readonly mayChange: boolean;
  /** The id of the application whose change is being sent. */
  readonly pendingId: string | null;
  readonly onSwitch: (change: MaintenanceChange) => void;
}

function Maintenance({ application, mayChange, pendingId, onSwitch }: MaintenanceProps) {
  const { id, name, maintenance } = application;
  if (!mayChange) return maintenance ? "on" : "off";
  return (
    <input
      type="checkbox"
      role="switch"
      className="switch is-warning"
      aria-label={`Maintenance of ${name}`}
      checked={maintenance}
      aria-checked={maintenance}
      disabled={id === pendingId}
      onChange={(event) => onSwitch({ application, isOn: event.currentTarget.checked })}
    />
  );
}
