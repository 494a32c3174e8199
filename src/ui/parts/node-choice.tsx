// Which nodes of the fleet a page shows, and which of them are missing in it; without a fleet, nothing.
import { Alert, Select, Stack, Text } from "@mantine/core";
import { useRead, useStatus } from "../api/queries.ts";
import type { Schemas } from "../api/resources.ts";
import { useUrlState } from "./url-state.ts";

export type Missing = Schemas["NodesRequests"]["missing"];

const ALL = "all";

/** The chosen nodes as query parameters, in the page URL; empty without a fleet. */
export function useNodeQuery(): { readonly node?: string } {
  const { data } = useStatus();
  const [node] = useUrlState("node", ALL);
  return (data?.fleet ?? null) === null ? {} : { node };
}

export function NodeChoice() {
  const { data } = useStatus();
  const fleet = data?.fleet ?? null;
  return fleet === null ? null : <Choice own={fleet.node} />;
}

function Choice({ own }: { readonly own: string }) {
  const [node, setNode] = useUrlState("node", ALL);
  const list = useRead<readonly Schemas["Node"][]>("nodes");
  // Without the database of the fleet, or for a shared URL.
  const names = list.data?.value.map(({ name }) => name) ?? [own];
  const known = names.includes(node) || node === ALL ? names : [...names, node];
  return (
    <Select
      aria-label="Nodes"
      data={[
        { value: ALL, label: "All nodes" },
        ...known.map((name) => ({
          value: name,
          label: name === own ? `${name} (this node)` : name,
        })),
      ]}
      value={node}
      onChange={(value) => setNode(value ?? ALL)}
      allowDeselect={false}
      w="11rem"
    />
  );
}

interface MissingNodesProps {
  readonly missing: Missing;
  /** Nodes whose history is there all the same. */
  readonly stored?: Schemas["NodesStats"]["stored"];
}

export function MissingNodes({ missing, stored = [] }: MissingNodesProps) {
  if (missing.length === 0) return null;
  const names = missing.map(({ name }) => name).join(", ");
  const hasHistory = missing.every(({ name }) => stored.some(({ node }) => node === name));
  return (
    <Alert
      color="yellow"
      mb="md"
      role="status"
      title={`${hasHistory ? "The last minute is without" : "Without"} ${names}`}
    >
      <Stack gap={2}>
        {missing.map(({ name, why }) => (
          <Text key={name} size="sm" style={{ overflowWrap: "anywhere" }}>
            {name}: {why}
          </Text>
        ))}
      </Stack>
    </Alert>
  );
}
