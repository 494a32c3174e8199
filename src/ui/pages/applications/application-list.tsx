// The list of applications: domains, state, HTTPS, and the maintenance switch.
import { Anchor, Badge, Stack, Text } from "@mantine/core";
import { IconExternalLink } from "@tabler/icons-react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { Can } from "../../parts/page-layout.tsx";
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
          render: (application) => <Domains application={application} />,
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
          render: (application) => <Maintenance application={application} />,
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

function Domains({ application }: { readonly application: Application }) {
  const { domains, https } = application;
  const { data: listeners = [] } = useResourceList("listeners");
  return (
    <Stack gap={0}>
      {domains.slice(0, 3).map((domain) => {
        const url = openUrl(domain, https.mode, listeners);
        return url === null ? (
          <Text key={domain} size="sm">
            {domain}
          </Text>
        ) : (
          <Anchor
            key={domain}
            href={url}
            target="_blank"
            rel="noreferrer"
            size="sm"
            title={`Open ${url}`}
          >
            {domain}{" "}
            <IconExternalLink
              size={13}
              aria-label="opens in a new tab"
              style={{ verticalAlign: "-2px" }}
            />
          </Anchor>
        );
      })}
      {domains.length > 3 && (
        <Text size="xs" c="dimmed">
          and {domains.length - 3} more
        </Text>
      )}
    </Stack>
  );
}

function State({ application }: { readonly application: Application }) {
  const { state, tone, detail } = stateOf(application);
  return (
    <Stack gap={2} align="flex-start">
      <StatusDot state={state} tone={tone} detail={detail} />
      {hasDrift(application) && (
        <Badge size="xs" variant="light" color="yellow" tt="none">
          drift
        </Badge>
      )}
    </Stack>
  );
}

function Https({ application }: { readonly application: Application }) {
  const { state, tone, detail } = httpsOf(application);
  return <StatusDot state={state} tone={tone} detail={detail} />;
}

function Maintenance({ application }: { readonly application: Application }) {
  const { id, name, maintenance } = application;
  const connection = useConnection();
  const { mutate, isPending } = useChange<Application, boolean>({
    send: (isOn) =>
      connection.send(`/applications/${id}`, { method: "PATCH", body: { maintenance: isOn } }),
    touches: ["applications"],
    canUndo: true,
    done: (_, isOn) => (isOn ? `${name} is under maintenance` : `${name} is served again`),
  });
  return (
    <Can needs="editor" otherwise={<Text size="sm">{maintenance ? "on" : "off"}</Text>}>
      <input
        type="checkbox"
        role="switch"
        className="switch is-warning"
        aria-label={`Maintenance of ${name}`}
        checked={maintenance}
        aria-checked={maintenance}
        disabled={isPending}
        onChange={(event) => mutate(event.currentTarget.checked)}
      />
    </Can>
  );
}
