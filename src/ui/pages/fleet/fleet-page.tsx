// The fleet: which nodes serve the last change, which one leads, and how to take one out; without a fleet, how to begin one.
import { Code, Stack, Text } from "@mantine/core";
import { useRead, useStatus } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { EmptyState } from "../../parts/empty-state.tsx";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { PageHead } from "../../parts/page-layout.tsx";
import { RowsSkeleton } from "../../parts/skeletons.tsx";
import { NodeRow } from "./node-row.tsx";

const REFRESH_MS = 2000;

export default function FleetPage() {
  const { data: status } = useStatus();
  if (status === undefined) return <RowsSkeleton />;
  return (
    <>
      <PageHead
        title="Fleet"
        text="Gateways that share this configuration. A change is live on all of them before its reply."
      />
      {status.fleet === null ? <NoFleet /> : <NodeList fleet={status.fleet} />}
    </>
  );
}

function NoFleet() {
  return (
    <EmptyState
      title="This gateway is on its own"
      text="Several gateways share one configuration when each of them starts with the same database and the same secret key:"
    >
      <Code block ta="left" w="100%" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
        {
          "SLUICE_SECRET_KEY=… sluice serve \\\n  --store postgres://user:password@db/sluice \\\n  --node-name n1"
        }
      </Code>
      <Text size="sm" c="dimmed">
        The first node brings its configuration; further ones start with an empty data directory.
      </Text>
    </EmptyState>
  );
}

const columns = {
  "--list-columns":
    "9px minmax(0, 1.4fr) 7rem minmax(0, 1fr) minmax(0, 0.8fr) minmax(0, 0.8fr) 2.2rem",
} as object;

const isLive = ({ state }: Schemas["Node"]) => state === "serving" || state === "draining";

const leadText = (nodes: readonly Schemas["Node"][]) =>
  `${nodes.find(({ leader }) => leader)?.name ?? "No node"} leads: it requests certificates, updates applications, and sends alerts.`;

const TITLES = ["State", "Configuration", "Last heartbeat", "Clock"];

function NodeList({ fleet }: { readonly fleet: Schemas["FleetStatus"] }) {
  const list = useRead<readonly Schemas["Node"][]>("nodes", { everyMs: REFRESH_MS });
  if (list.isPending) return <RowsSkeleton />;
  if (list.data === undefined)
    return <ErrorPanel error={list.error} onRetry={() => list.refetch()} />;
  const nodes = list.data.value;
  const head = Math.max(fleet.head, ...nodes.map(({ stored }) => stored));
  // The last known states of other nodes may be wrong.
  const isBlind = fleet.state === "cut_off" || list.isError;
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed" aria-live="polite">
        {isBlind
          ? "The other nodes are unknown until the database of the fleet responds."
          : `${nodes.filter(isLive).length} of ${nodes.length} nodes serve the last change, entry ${head}. ${leadText(nodes)}`}
      </Text>
      <table className="list" aria-label="Nodes" style={columns}>
        <thead>
          <tr className="list-head">
            <th scope="col">
              <span className="visually-hidden">Health</span>
            </th>
            <th scope="col">Name</th>
            {TITLES.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <NodeRow
              key={node.id}
              node={node.name === fleet.node ? { ...node, state: fleet.state } : node}
              head={head}
              isOwn={node.name === fleet.node}
              isBlind={isBlind}
            />
          ))}
        </tbody>
      </table>
    </Stack>
  );
}
